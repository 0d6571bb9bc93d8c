#!/usr/bin/env bash
# Trains all systems and collects their results: TAGGERS=FOLDER STRUCTPERC_DATA=... STRUCTPERC_ENCODER=... bash run.sh
# Virtual environments are VENVS/MODULE, each with requirements/MODULE.txt; this one has structperc. One thread.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${TAGGERS:?folder of predictions}" "${STRUCTPERC_DATA:?corpora}" "${STRUCTPERC_ENCODER:?MiniLM}" "${VENVS:?}"
: "${STRUCTPERC_VECTORS_NPY:?PATH of PATH.npy and PATH.words.txt}"
export OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
corpus=$STRUCTPERC_DATA/conll2003

tagger() { # SIZE NAME PYTHON MODULE [options]: one training on named entities, unless it has been done
    local size=$1 name=$2 python=$3 module=$4 train=$TAGGERS/conll2003_$1.txt
    shift 4
    [ -e "$TAGGERS/$size/$name/costs.json" ] && return
    "$python" -m "benchmarks.taggers.$module" --train "$train" --dev "$corpus/eng.testa" \
        --output "$TAGGERS/$size/$name" "news2020=$STRUCTPERC_DATA/news2020/first.txt" "$@"
}

mkdir -p "$TAGGERS"
ln -sf "$corpus/eng.testa" "$TAGGERS/eng.testa"
ln -sf "$corpus/eng.train" "$TAGGERS/conll2003_all.txt"
for size in 100 300 1000 3000; do
    python -m benchmarks.taggers.first $size "$corpus/eng.train" >"$TAGGERS/conll2003_$size.txt"
done

encoder=(--encoder "$STRUCTPERC_ENCODER")
for size in 3000 1000 300 100 all; do
    tagger $size words python ours --configs configs/best/entities_words.yaml
    tagger $size clusters python ours --configs configs/best/entities_clusters.yaml
    tagger $size frozen python ours --configs configs/best/entities_frozen_templates.yaml \
        --speed news2020 # vectors of the development file are in the cache after training
    tagger $size crfsuite "$VENVS/crfsuite/bin/python" crfsuite
    tagger $size spacy "$VENVS/spacy/bin/python" spacy
done
for size in 3000 all; do
    tagger $size finetuned python ours --configs configs/studies/fine_tuning_entities.yaml#crf \
        '--set=--model.parameter_groups.rates={scorer.encoder: 1.5e-4}'
    tagger $size crfsuite_words python crfsuite --features configs/best/entities_words.yaml # needs sklearn-crfsuite
    tagger $size tokentagger python transformers "${encoder[@]}" --head structperc
    tagger $size softmax "$VENVS/transformers/bin/python" transformers "${encoder[@]}"
    tagger $size crf "$VENVS/transformers/bin/python" transformers "${encoder[@]}" --head crf
    tagger $size flair "$VENVS/flair/bin/python" flair "${encoder[@]}"
    tagger $size flair_bilstm "$VENVS/flair/bin/python" flair --vectors "$STRUCTPERC_VECTORS_NPY"
    tagger $size span_marker "$VENVS/span_marker/bin/python" span_marker "${encoder[@]}"
done
parts_of_speech() { # FOLDER COLUMN NAME PYTHON MODULE [options]
    local folder=$1 column=$2 name=$3 python=$4 module=$5
    shift 5
    [ -e "$TAGGERS/$folder/$name/costs.json" ] && return
    "$python" -m "benchmarks.taggers.$module" --column "$column" --train "$STRUCTPERC_DATA/ud_ewt/train.txt" \
        --dev "$STRUCTPERC_DATA/ud_ewt/dev.txt" --output "$TAGGERS/$folder/$name" "$@"
}

parts_of_speech xpos 2 clusters python ours --configs configs/best/parts_of_speech_clusters.yaml
parts_of_speech xpos 2 nltk "$VENVS/nltk/bin/python" nltk
parts_of_speech xpos 2 spacy "$VENVS/spacy/bin/python" spacy
parts_of_speech upos 1 nltk "$VENVS/nltk/bin/python" nltk

structperc study benchmarks/taggers/entities.yaml --root "$TAGGERS/study"
results=benchmarks/taggers/results
python -m benchmarks.taggers.results study "$TAGGERS/study/study.json" "$TAGGERS/3000" >$results/entities_3000.json
python -m benchmarks.taggers.results scores "$TAGGERS"/{100,300,1000,3000,all} >$results/curve.json
python -m benchmarks.taggers.results scores "$TAGGERS/xpos" >$results/parts_of_speech.json
