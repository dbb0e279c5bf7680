"""Runs Beam's pool of Python workers on an address that no other pool uses.

python pool.py ADDRESS:PORT

Beam's worker_pool_main listens on all addresses of its machine. It identifies workers by numbers
that each TaskManager counts separately, so every TaskManager needs its own pool, as on separate
machines. Here all TaskManagers share a machine, so each pool has its own loopback address.
"""

import logging
import sys
import threading

import grpc
from apache_beam.portability.api import beam_fn_api_pb2_grpc
from apache_beam.runners.worker.worker_pool_main import BeamFnExternalWorkerPoolServicer
from apache_beam.utils import thread_pool_executor


def main(address):
    logging.basicConfig(level=logging.INFO)
    server = grpc.server(thread_pool_executor.shared_unbounded_instance())
    if not server.add_insecure_port(address):
        raise OSError(f"{address} is taken")
    servicer = BeamFnExternalWorkerPoolServicer(use_process=True)
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(servicer, server)
    server.start()
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1])
