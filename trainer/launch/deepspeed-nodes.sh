#!/usr/bin/env bash
# Several machines, by DeepSpeed's launcher over ssh (it needs pdsh here). HOSTFILE names them.
# Start it on the first of them. Each needs this folder and its .venv at the same path.
#   HOSTFILE=hosts MASTER=node-a trainer/launch/deepspeed-nodes.sh --recipe glm-10b --data /disk/wudao
# Of the environment only NCCL_*, PYTHON*, MV2_*, UCX_* and MLFLOW_* reach the other machines;
# put the rest into .deepspeed_env as lines NAME=VALUE.
set -euo pipefail
exec deepspeed --hostfile "${HOSTFILE:-$(dirname "$0")/hostfile}" --master_addr "${MASTER:?the first node}" \
    --module trainer.train "$@"
