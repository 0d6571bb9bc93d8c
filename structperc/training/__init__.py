"""The only stage that knows Lightning: tagger, data modules, callbacks, saved models."""
