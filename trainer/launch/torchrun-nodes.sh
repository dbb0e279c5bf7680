#!/usr/bin/env bash
# Several machines, by torchrun: give this command on each of them, with its own NODE, from 0.
# Nothing is needed but that all reach MASTER:29500; GPUS may differ from node to node.
#   MASTER=node-a NODES=3 NODE=1 GPUS=1 trainer/launch/torchrun-nodes.sh --recipe glm-10b --data /disk/wudao
set -euo pipefail
# Seconds that torchrun gives the ranks to save when asked to stop (torch 2.13; older ones: 30).
export TORCH_ELASTIC_SHUTDOWN_TIMEOUT=${TORCH_ELASTIC_SHUTDOWN_TIMEOUT:-110}
# The signals that torchrun passes on to the ranks, which then save: SIGUSR1 too, and SIGHUP unless
# it is ignored here, as below nohup.
hangup=SIGHUP,
if (( 0x$(sed -n 's/^SigIgn:[[:space:]]*//p' "/proc/$$/status") & 1 )); then hangup=; fi
export PET_SIGNALS_TO_HANDLE=${PET_SIGNALS_TO_HANDLE:-${hangup}SIGTERM,SIGINT,SIGQUIT,SIGUSR1}
exec torchrun --nnodes "${NODES:?number of machines}" --node-rank "${NODE:?this machine, from 0}" \
    --nproc-per-node "${GPUS:-gpu}" --master-addr "${MASTER:?the first machine}" --master-port 29500 \
    -m trainer.train "$@"
