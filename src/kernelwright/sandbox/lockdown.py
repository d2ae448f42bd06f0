"""What a process does to itself to have less: Landlock, seccomp, limits, fewer rights. Linux only.

What it does: thin, checked calls into the kernel. Each function takes something away for good from the calling process and its
children. What it does not do: decide the order or the strength (zygote_main, isolation). Called inside the sandbox, and by
`isolation.detect` to ask what the kernel offers.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import resource
import signal
import struct
from collections.abc import Iterable
from pathlib import Path

from kernelwright.sandbox.limits import Limits

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP = 1, 4, 36, 38, 24
# Landlock's system calls have the same numbers on every architecture (Documentation/userspace-api/landlock.rst).
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
LANDLOCK_RULE_PATH_BENEATH = 1
FS_EXECUTE, FS_WRITE_FILE, FS_READ_FILE, FS_READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
FS_TRUNCATE, FS_IOCTL_DEV = 1 << 14, 1 << 15
FS_OF_FILES = FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV
FS_READ = FS_EXECUTE | FS_READ_FILE | FS_READ_DIR
FS_BITS_BY_ABI = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # later versions add none to the file system
NET_TCP = 0b11  # bind and connect, from version 4
SCOPE_ABSTRACT_UNIX, SCOPE_SIGNAL = 1 << 0, 1 << 1  # from version 6
CLONE_THREAD = 0x0001_0000
CLONE_NAMESPACES = (0x0002_0000, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000)
AF_UNIX = 1
SECCOMP_ALLOW, SECCOMP_ERRNO = 0x7FFF_0000, 0x0005_0000
NOT_EQUAL, MASKED_EQUAL = 1, 7  # of libseccomp's enum scmp_compare
NR_OPEN_MINIMUM = 64

# Refused in every worker: other processes' memory, namespaces and mounts, kernel surfaces that no kernel of ours needs.
REFUSED_CALLS = (
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
    "unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsmount", "fsconfig",
    "fspick", "mount_setattr", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register",
    "keyctl", "add_key", "request_key", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module",
    "swapon", "swapoff", "reboot", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname",
    "acct", "quotactl", "name_to_handle_at", "open_by_handle_at", "personality", "modify_ldt", "iopl", "ioperm", "syslog",
    "fanotify_init", "shmget", "shmat", "msgget", "semget", "mq_open",
)  # fmt: skip
SIGNAL_CALLS = ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")  # first argument: the process

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def _prctl(option: int, value: int) -> None:
    _check(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), f"prctl({option})")


def adopt_orphans() -> None:
    """Descendants whose parent dies become our children instead of vanishing to init."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Be killed when the parent (its thread that forked us) ends."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def close_to_debuggers() -> None:
    """No core dump, and no other process of the same user may read or write our memory (/proc/pid/mem, ptrace)."""
    _prctl(PR_SET_DUMPABLE, 0)


def forbid_new_privileges() -> None:
    """No setuid program can give rights back; Landlock and seccomp require it."""
    _prctl(PR_SET_NO_NEW_PRIVS, 1)


def become(uid: int) -> None:
    """Leave root for `uid`, with no groups and no capabilities. Raises OSError where that is not allowed."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def drop_capabilities() -> None:
    """Stay the same user without any capability, and never get one back."""
    for capability in range(64):
        if _libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
            break
    header = struct.pack("Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
    _check(_libc.capset(header, bytes(24)), "capset")


def landlock_version() -> int:
    """The kernel's Landlock version; 0 where it has none."""
    return max(0, int(_libc.syscall(LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1))))


def confine_files(read_only: Iterable[Path], writable: Iterable[Path]) -> None:
    """Landlock: only these files and folders; no TCP; no signals or abstract sockets to processes outside."""
    version = landlock_version()
    if version == 0:
        raise OSError(errno.ENOSYS, "this kernel has no Landlock")
    everything = (1 << FS_BITS_BY_ABI.get(version, 16)) - 1
    ruleset = _ruleset(everything, NET_TCP if version >= 4 else 0, _scopes(version), version)
    try:
        for path in read_only:
            _allow(ruleset, path, FS_READ & everything)
        for path in writable:
            _allow(ruleset, path, everything)
        _restrict(ruleset)
    finally:
        os.close(ruleset)


def confine_signals() -> bool:
    """Landlock: signals reach only ourselves and what we start. False where the kernel is too old (before 6.12)."""
    version = landlock_version()
    if version < 6:
        return False
    ruleset = _ruleset(0, 0, SCOPE_SIGNAL, version)
    try:
        _restrict(ruleset)
    finally:
        os.close(ruleset)
    return True


def _scopes(version: int) -> int:
    return (SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL) if version >= 6 else 0


def _ruleset(files: int, net: int, scopes: int, version: int) -> int:
    attributes = struct.pack("QQQ", files, net, scopes)[: 24 if version >= 6 else 16 if version >= 4 else 8]
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    return _check(
        _libc.syscall(LANDLOCK_CREATE_RULESET, buffer, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0)), "landlock ruleset"
    )


def _allow(ruleset: int, path: Path, access: int) -> None:
    try:
        target = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not path.is_dir():
            access &= FS_OF_FILES
        rule = struct.pack("=Qi", access, target)
        _check(
            _libc.syscall(LANDLOCK_ADD_RULE, ctypes.c_int(ruleset), LANDLOCK_RULE_PATH_BENEATH, rule, ctypes.c_uint(0)),
            f"landlock rule for {path}",
        )
    finally:
        os.close(target)


def _restrict(ruleset: int) -> None:
    _check(_libc.syscall(LANDLOCK_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0)), "landlock")


class _Condition(ctypes.Structure):
    """libseccomp's struct scmp_arg_cmp."""

    _fields_ = (("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64))


@functools.cache
def _seccomp() -> ctypes.CDLL:
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_rule_add_array.argtypes = (
        ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.POINTER(_Condition),
    )  # fmt: skip
    library.seccomp_load.argtypes = library.seccomp_release.argtypes = (ctypes.c_void_p,)
    return library


def seccomp_problem() -> str | None:
    """Why seccomp filters can't be used here, or None where they can. Loads libseccomp, once for all later forks."""
    try:
        _seccomp()
    except OSError as error:
        return f"{error} (apt-get install libseccomp2)"
    return None


def refuse_calls(unix_sockets: bool, may_fork: bool, signals_confined: bool) -> None:
    """seccomp: refuse what no kernel of ours needs. `unix_sockets`: allowed, because the network namespace is our own."""
    library = _seccomp()
    policy = library.seccomp_init(ctypes.c_uint32(SECCOMP_ALLOW))
    if not policy:
        raise OSError(errno.ENOMEM, "seccomp_init")

    def refuse(name: str, *conditions: _Condition, code: int = errno.EPERM) -> None:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:  # else this architecture or this libseccomp has no such call
            rules = (_Condition * len(conditions))(*conditions)
            result = library.seccomp_rule_add_array(policy, SECCOMP_ERRNO | code, number, len(conditions), rules)
            if result < 0:
                raise OSError(-result, f"seccomp rule for {name}")

    for name in REFUSED_CALLS:
        refuse(name)
    other_families = (_Condition(0, NOT_EQUAL, AF_UNIX, 0),) if unix_sockets else ()
    refuse("socket", *other_families, code=errno.EACCES)
    refuse("clone3", code=errno.ENOSYS)  # its flags can't be read by a filter; libc falls back to clone
    for flag in CLONE_NAMESPACES:
        refuse("clone", _Condition(0, MASKED_EQUAL, flag, flag))
    if not may_fork:
        refuse("fork")
        refuse("vfork")
        refuse("clone", _Condition(0, MASKED_EQUAL, CLONE_THREAD, 0))
    if not signals_confined:
        for name in SIGNAL_CALLS:
            refuse(name, _Condition(0, NOT_EQUAL, os.getpid(), 0))
        refuse("tkill")
        refuse("pidfd_send_signal")
    result = library.seccomp_load(policy)
    library.seccomp_release(policy)
    if result < 0:
        raise OSError(-result, "seccomp_load")


def set_limits(limits: Limits, others: int) -> None:
    """rlimits of this process. `others`: processes that the user has besides (RLIMIT_NPROC counts them all)."""
    if limits.memory_bytes is not None:
        with open("/proc/self/statm", encoding="ascii") as file:
            mapped = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        # Address space is not memory: thread stacks and arenas reserve what they never touch; 128 MiB a thread cover them.
        _limit(resource.RLIMIT_AS, mapped + limits.memory_bytes + (os.cpu_count() or 1) * (128 << 20))
        _limit(resource.RLIMIT_DATA, resource.RLIM_INFINITY)
    if limits.cpu_seconds is not None:
        _limit(resource.RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, limits.file_bytes)
    _limit(resource.RLIMIT_NOFILE, max(NR_OPEN_MINIMUM, limits.open_files))
    _limit(resource.RLIMIT_NPROC, limits.processes + others)


def _limit(kind: int, soft: int, hard: int | None = None) -> None:
    """Set a limit, never above the one that is already there."""
    _, most = resource.getrlimit(kind)

    def within(value: int) -> int:
        return value if most == resource.RLIM_INFINITY else most if value == resource.RLIM_INFINITY else min(value, most)

    resource.setrlimit(kind, (within(soft), within(soft if hard is None else hard)))
