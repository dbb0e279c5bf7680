#!/usr/bin/env bash
# One machine: all its GPUs, or GPUS of them, by torchrun.
#   GPUS=2 trainer/launch/torchrun.sh --recipe glm-large --data build/wudao --save runs/large
set -euo pipefail
# Seconds that torchrun gives the ranks to save when asked to stop (torch 2.13; older ones: 30).
export TORCH_ELASTIC_SHUTDOWN_TIMEOUT=${TORCH_ELASTIC_SHUTDOWN_TIMEOUT:-110}
# The signals that torchrun passes on to the ranks, which then save: SIGUSR1 too, and SIGHUP unless
# it is ignored here, as below nohup.
hangup=SIGHUP,
if (( 0x$(sed -n 's/^SigIgn:[[:space:]]*//p' "/proc/$$/status") & 1 )); then hangup=; fi
export PET_SIGNALS_TO_HANDLE=${PET_SIGNALS_TO_HANDLE:-${hangup}SIGTERM,SIGINT,SIGQUIT,SIGUSR1}
if [[ -z ${GPUS:-} && ! -e /dev/kfd ]] && ! nvidia-smi -L &>/dev/null; then
    echo "torchrun.sh: there is no GPU here. Say how many ranks to start on the CPU: GPUS=1 $0 …" >&2
    exit 2
fi
exec torchrun --standalone --nproc-per-node "${GPUS:-gpu}" -m trainer.train "$@"
