#!/usr/bin/env bash
# One machine: all its GPUs, or GPUS of them, by DeepSpeed's launcher.
#   GPUS=2 trainer/launch/deepspeed.sh --recipe glm-large --data build/wudao --save runs/large
set -euo pipefail
exec deepspeed ${GPUS:+--num_gpus "$GPUS"} --module trainer.train "$@"
