#!/usr/bin/env bash
# Tests, checks and timings on a GPU -> one report.
#
#   bash benchmarks/gpu.sh --wheels FOLDER    where there is a network: download what a bare machine lacks
#   bash benchmarks/gpu.sh [REPORT]           on the machine; default: gpu_report.md
#
# WHEELS=FOLDER installs these files beside what is there; PYTHON names the interpreter. Without a GPU the kernels are
# interpreted, and compiled for compute capabilities 8.0 and 9.0. Every section has a time limit, all together twelve
# minutes; the status is 1 if one of them failed.
set -u
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

if [ "${1:-}" = --wheels ]; then
    exec "$python" -m pip download --quiet --no-deps --only-binary=:all: --python-version 3.12 \
        --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
        -c constraints.txt -d "${2:?name a folder}" \
        numba llvmlite lazy-loader loky datasets dill multiprocess pytorch-crf
fi

report=${1:-gpu_report.md}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if [ -n "${WHEELS:-}" ]; then
    "$python" -m pip install --quiet --no-index --no-deps --no-compile --target "$scratch/site" "$WHEELS"/*.whl
    export PYTHONPATH="$scratch/site"
fi
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
failed=0
: >"$report"

section() { # title, seconds, command
    local title=$1 limit=$2
    shift 2
    printf '\n## %s\n\n' "$title" | tee -a "$report"
    timeout "$limit" "$@" 2>&1 | tee -a "$report"
    local status=${PIPESTATUS[0]}
    if [ "$status" != 0 ]; then
        failed=1
        printf '\n**FAILED** with status %s (124: longer than %s s)\n' "$status" "$limit" | tee -a "$report"
    fi
}
tests() { "$python" -m pytest -q -W ignore -p no:cacheprovider -n "$(($(nproc) < 8 ? $(nproc) : 8))" "$@"; }
export -f tests
export python

section "Machine" 20 "$python" -c "
import platform, torch
gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else 'no GPU'
print(gpu + ', torch', torch.__version__ + ', Python', platform.python_version())"
section "Checks" 120 "$python" -m benchmarks.gpu checks
section "Checks of segments" 90 "$python" -m benchmarks.gpu_segments checks
section "Compilation for 8.0 and 9.0" 60 bash -c 'tests tests/ops/test_cuda_compiles.py -m "slow or not slow"'
section "Tests" 150 bash -c 'tests tests/ops/test_cuda.py tests/ops/test_contract.py tests/ops/test_host_reads.py \
    tests/ops/test_invalid_scores.py tests/ops/test_semi_markov.py tests/ops/test_semi_markov_cuda.py tests/chain \
    tests/nn tests/nonlocal_features/test_contract.py -k "not cpu"'
if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
        for module in gpu gpu_segments; do
            section "compute-sanitizer, $tool, $module" 40 compute-sanitizer --tool "$tool" --error-exitcode 9 \
                "$python" -m "benchmarks.$module" small
        done
    done
fi
section "Times" 90 "$python" -m benchmarks.gpu times
section "Times of segments" 60 "$python" -m benchmarks.gpu_segments times
section "Share of the head in a training step" 40 "$python" -m benchmarks.gpu encoder
if [ "$("$python" -c 'import torch; print(torch.cuda.is_available())')" = True ]; then
    for config in quickstart studies/embedded#bilstm_crf; do
        section "fit -c pkg:$config --trainer.accelerator gpu" 60 "$python" train.py fit \
            -c "pkg:$config" --trainer.accelerator gpu --trainer.default_root_dir "$scratch/runs" \
            --trainer.enable_progress_bar false
    done
fi
exit $failed
