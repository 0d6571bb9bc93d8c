"""The former paths of classes, from before rooms named them: saved models and configurations may still hold these."""

ROOMS = {
    "structperc.features": (
        "structperc.features.clusters",
        "structperc.features.encoded",
        "structperc.features.extract",
        "structperc.features.gazetteers",
    ),
    "structperc.encoders": (
        "structperc.encoders.base",
        "structperc.encoders.bilstm",
        "structperc.encoders.char_cnn",
        "structperc.encoders.transformer",
        "structperc.encoders.window",
        "structperc.encoders.word_embedding",
    ),
    "structperc.scorers": (
        "structperc.scorers.base",
        "structperc.scorers.neural",
        "structperc.scorers.sparse_linear",
        "structperc.scorers.sum",
    ),
    "structperc.chain": (
        "structperc.chain.viterbi",
        "structperc.chain.kbest",
        "structperc.chain.segments",
        "structperc.chain.viterbi",
    ),
    "structperc.nonlocal_features": (
        "structperc.nonlocal_features.affixes",
        "structperc.nonlocal_features.base",
        "structperc.nonlocal_features.boundary",
        "structperc.nonlocal_features.conjunction",
        "structperc.nonlocal_features.entity",
        "structperc.nonlocal_features.global_feature",
        "structperc.nonlocal_features.majority_phrase",
        "structperc.nonlocal_features.majority_superphrase",
        "structperc.nonlocal_features.phrase",
        "structperc.nonlocal_features.quotes",
        "structperc.nonlocal_features.segments",
        "structperc.nonlocal_features.subphrase",
        "structperc.nonlocal_features.vocabulary",
    ),
    "structperc.criteria": (
        "structperc.criteria.base",
        "structperc.criteria.mce_f",
        "structperc.criteria.exponential",
        "structperc.criteria.hinge",
        "structperc.criteria.crf",
        "structperc.criteria.local_and_nonlocal",
        "structperc.criteria.crf",
        "structperc.criteria.perceptron",
        "structperc.criteria.mce",
        "structperc.criteria.mce_f",
        "structperc.criteria.misclassification",
        "structperc.criteria.perceptron",
        "structperc.criteria.priors",
        "structperc.criteria.mce",
        "structperc.criteria.crf",
        "structperc.criteria.mce_f",
    ),
    "structperc.optim": (
        "structperc.optim.full_batch",
        "structperc.optim.gpd",
        "structperc.optim.lbfgs",
        "structperc.optim.owlqn",
        "structperc.optim.passive_aggressive",
        "structperc.optim.perceptron",
        "structperc.optim.wrappers",
        "structperc.optim.quickprop",
        "structperc.optim.base",
    ),
    "structperc.reranking": (
        "structperc.rerankers.boosting",
        "structperc.rerankers.examples",
        "structperc.rerankers.lists",
        "structperc.rerankers.local_score",
        "structperc.rerankers.ranker",
        "structperc.rerankers.voted_perceptron",
        "structperc.training.bayes_point",
        "structperc.training.global_reranker",
        "structperc.training.jackknife",
        "structperc.training.reranker",
    ),
    "structperc.guided": (
        "structperc.guided.model",
        "structperc.guided.learning",
        "structperc.guided.model",
        "structperc.guided.rules",
        "structperc.guided.search",
        "structperc.guided.rules",
    ),
    "structperc.taggers": (
        "structperc.training.guided_tagger",
        "structperc.training.tagger",
    ),
    "structperc.data": ("structperc.data.lexicon", "structperc.training.sources"),
    "structperc.training": ("structperc.training.callbacks",),
}
_ROOM_OF = {module: room for room, modules in ROOMS.items() for module in modules}


def present_name(path: str) -> str:
    """Return the public path of a class whose former path named its file; other paths are returned as they are."""
    module, _, name = path.rpartition(".")
    return f"{_ROOM_OF[module]}.{name}" if module in _ROOM_OF else path
