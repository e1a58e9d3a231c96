"""Serves a model on this machine with the server of llama.cpp: PORT MODEL."""

import sys
import threading

import xllamacpp

params = xllamacpp.CommonParams()
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[1])
params.model.path = sys.argv[2]
params.offline = True
params.ui = False
params.use_jinja = True
# Two questions at once, each with a context of 1024 tokens.
params.n_parallel = 2
params.n_ctx = 2048
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
print("ready", server.listening_address, flush=True)
threading.Event().wait()
