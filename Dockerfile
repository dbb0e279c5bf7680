# Two images out of one checkout:
#   docker build --target worker  --tag corpusmill-worker .    Python workers of Beam, for any cluster
#   docker build --target trainer --tag corpusmill-trainer .   training, for machines with NVIDIA cards
# docs/large.md says how each is used.

# Beam's own worker image: its entry point /opt/apache/beam/boot is what runners and worker pools start.
# Python and Beam are the versions that the driver must have as well.
FROM docker.io/apache/beam_python3.11_sdk:2.77.0 AS worker
WORKDIR /opt/corpusmill
COPY . .
RUN pip install --no-cache-dir --constraint .ci/constraints.txt ".[pipelines,fast,hub,s3,datatrove]"
# From here on Python finds the installed packages and not the checkout. Kernels are compiled for the processor
# of this machine; on one of another kind the first process that needs them compiles them again.
WORKDIR /
RUN python -m pipelines.steps.compile

# torch brings the CUDA libraries that it runs on; DeepSpeed builds operators with the compiler, which must be of
# the CUDA version that torch was made with (torch.version.cuda).
FROM docker.io/nvidia/cuda:13.2.1-devel-ubuntu24.04 AS trainer
# The archive keeps one version of a package, so that a pinned one is soon gone.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3 python3-dev python3-venv \
 && rm -rf /var/lib/apt/lists/*
ENV VIRTUAL_ENV=/opt/venv PATH=/opt/venv/bin:$PATH
RUN python3 -m venv /opt/venv
WORKDIR /opt/corpusmill
COPY . .
RUN pip install --no-cache-dir --constraint .ci/constraints.txt ".[train,report,s3]"
ENTRYPOINT ["trainer/launch/torchrun.sh"]
