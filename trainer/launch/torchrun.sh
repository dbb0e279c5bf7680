#!/usr/bin/env bash
# One machine: all its GPUs, or GPUS of them, by torchrun.
#   GPUS=2 trainer/launch/torchrun.sh --recipe glm-large --data build/wudao --save runs/large
set -euo pipefail
exec torchrun --standalone --nproc-per-node "${GPUS:-gpu}" -m trainer.train "$@"
