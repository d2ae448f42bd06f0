"""Processes that may be hostile: isolation, a zygote that forks workers, shared tensors, and plain subprocesses.

What it does: runs code that is not trusted in a process that reaches no network, no files but its own, no other run, and
cannot outlive its turn; says in one typed failure how it ended. What it does not do: judge, time or compare anything.
Who calls it: lab (workers), targets (`process.run` for compilers), task and capture (a reference in its own process).

    isolation = detect()                                            # isolation.py
    with Zygote(isolation, Mounts(read_only=(task_file,)), Limits(), threads=2,
                preload=("torch", "kernelwright.lab.reference_worker")) as zygote:       # zygote.py
        with zygote.worker("kernelwright.lab.reference_worker") as worker:   # worker.py: a fork, 10-100 ms
            reply = worker.call("run", RunRequest(...), fds=(array.fd,), timeout=10.0)
            result = reply.decode(RunResult)                        # reply.fds are the caller's to close

Inside the worker the module `kernelwright.lab.reference_worker` defines

    def handlers() -> dict[str, Handler]:                           # handlers.py; called once in each forked worker
        state = ...
        return {"run": Handler(RunRequest, state.run)}              # run(request, fds) -> RunResult | Answer(result, fds)

A call either returns a `Reply` or raises a `WorkerFailed` (failures.py): `Died`, `TimedOut`, `OutOfMemory`, `Garbled`, and
`HandlerRaised`, after which alone the worker may be called again.
"""
