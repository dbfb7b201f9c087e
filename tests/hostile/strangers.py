"""Another user of the machine, while one trains: who may read, write, signal or disturb nothing of it.

As root alone, who may become both: the one who trains and the stranger.
"""
import encodings.idna  # of connections; not to be found any more as another user
import errno
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from judge import Outcome

TRAINING = ["run", "--model", "gpt-tiny", "--cluster", "this-machine", "--data", "2", "--global-batch", "4", "--micro-batch",
            "1", "--sequence", "32", "--corpus", "text.txt", "--timeline-steps", "0", "--checkpoint", "ck", "--checkpoint-every", "5", "--record", "run.json", "--steps"]
PROCESSES = ["--processes", "2"]
# Words before a command that may then have no network of its own.
IN_THIS_NETWORK = ["unshare", "-Ur", "sh", "-c", 'echo 0 >/proc/sys/user/max_net_namespaces && exec "$@"', "sh"]
REFUSED = {errno.EPERM, errno.EACCES}


def tries(what, act):
    """One thing that must be refused, for the list of what was not."""
    try:
        act()
    except OSError as error:
        # What is gone, or lies in a folder that cannot be entered, is refused as well.
        return [] if error.errno in REFUSED | {errno.ENOENT, errno.ESRCH, errno.EROFS} else [f"{what}: {error}"]
    return [what]


def open_with(path, flags):
    return lambda: os.close(os.open(path, flags | os.O_NONBLOCK))


def stranger(known):
    """As the other user: all that is tried. `known`: of the training: its processes, folders and files. Returns what was
    allowed."""
    allowed = []
    for process in known["processes"]:
        allowed += tries(f"signal to {process}", lambda p=process: os.kill(p, signal.SIGINT))
        for name in ["environ", "mem", "maps"]:
            allowed += tries(f"reading /proc/{process}/{name}", lambda p=process, n=name: open(f"/proc/{p}/{n}", "rb").read(1))
        allowed += tries(f"listing /proc/{process}/fd", lambda p=process: os.listdir(f"/proc/{p}/fd"))
    for folder in known["private"]:
        allowed += tries(f"listing {folder}", lambda f=folder: os.listdir(f))
        allowed += tries(f"a file in {folder}", open_with(os.path.join(folder, "x"), os.O_CREAT | os.O_WRONLY))
        allowed += tries(f"renaming {folder}", lambda f=folder: os.rename(f, f + "x"))
    for file in known["private files"]:
        allowed += tries(f"reading {file}", open_with(file, os.O_RDONLY))
        allowed += tries(f"writing {file}", open_with(file, os.O_WRONLY))
        allowed += tries(f"removing {file}", lambda f=file: os.unlink(f))
    for file in known["files"]:
        allowed += tries(f"writing {file}", open_with(file, os.O_WRONLY))
        allowed += tries(f"removing {file}", lambda f=file: os.unlink(f))
    for folder in known["folders"]:
        allowed += tries(f"a file in {folder}", open_with(os.path.join(folder, "x"), os.O_CREAT | os.O_WRONLY))
        allowed += tries(f"renaming {folder}", lambda f=folder: os.rename(f, f + "x"))
    for port in known["ports"]:  # garbage to whatever listens
        for _ in range(20):
            try:
                with socket.create_connection(("127.0.0.1", port), 1) as peer:
                    peer.sendall(b"\xff" * 4096)
            except OSError:
                break
    return allowed


def as_user(user, act):
    """What `act` returns, a list of texts, in a process of that user: the interpreter may lie where only root can read."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            os.chdir("/")
            os.write(writing, json.dumps(act()).encode())
        except BaseException as error:  # told as a finding
            os.write(writing, json.dumps([f"the stranger failed: {error!r}"]).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        found = json.load(answer)
    os.waitpid(child, 0)
    return found


def children_of(process):
    found = [process]
    for path in [f"/proc/{process}/task/{thread}/children" for thread in os.listdir(f"/proc/{process}/task")]:
        with open(path) as children:
            for child in children.read().split():
                found += children_of(int(child))
    return found


def ports_of(processes):
    """Those on which the processes listen in this network."""
    ports = set()
    for process in processes:
        if os.readlink(f"/proc/{process}/ns/net") != os.readlink("/proc/self/ns/net"):
            continue
        sockets = {os.readlink(entry.path)[8:-1] for entry in os.scandir(f"/proc/{process}/fd")
                   if os.readlink(entry.path).startswith("socket:")}
        for name in ["tcp", "tcp6"]:
            with open(f"/proc/{process}/net/{name}") as table:
                for fields in [line.split() for line in list(table)[1:]]:
                    if fields[3] == "0A" and fields[9] in sockets:
                        ports.add(int(fields[1].split(":")[1], 16))
    return sorted(ports)


def everything_below(folder):
    files, folders = [], [folder]
    for parent, inner, names in os.walk(folder):
        folders += [os.path.join(parent, name) for name in inner]
        files += [os.path.join(parent, name) for name in names]
    return files, folders


def belongs_to(user):
    """Files and folders of a user where all may write, by name."""
    found = []
    for base in ["/dev/shm", "/tmp", "/var/tmp"]:
        for name in os.listdir(base):
            path = os.path.join(base, name)
            try:
                if os.lstat(path).st_uid == user:
                    found.append(path)
            except FileNotFoundError:
                continue
    return found


def meet(home, table, owner, other, kind, words):
    """One training, and all that the stranger tries. `words`: of its command, after those of every training."""
    processes = "--processes" in words
    place = os.path.join(home, kind)
    os.mkdir(place, 0o755)
    shutil.copy(os.path.join(home, "text.txt"), place)
    os.chown(place, owner, owner)
    before = set(belongs_to(owner))
    begin = time.monotonic()
    environment = {"PATH": os.environ["PATH"], "HOME": place, "TMPDIR": "/tmp", "TRIVIUM_DATA_DIR": home}
    with open(os.path.join(place, "out"), "wb") as out, open(os.path.join(place, "err"), "wb") as err:
        child = subprocess.Popen(words, cwd=place, stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=environment,
                                 user=owner, group=owner, extra_groups=[], umask=0o022, start_new_session=True)
    while child.poll() is None and not os.path.exists(os.path.join(place, "ck", "latest")):
        time.sleep(0.05)
    ours = [path for path in belongs_to(owner) if path not in before and path != home]
    known = {"processes": children_of(child.pid) if child.poll() is None else []}
    known["ports"] = ports_of(known["processes"])
    known["private"], known["private files"] = [], []
    for path in ours:
        files, folders = everything_below(path) if os.path.isdir(path) else ([path], [])
        known["private files"] += files
        known["private"] += folders
    known["files"], known["folders"] = everything_below(place)
    allowed = as_user(other, lambda: stranger(known))
    lived = child.poll() is None
    child.send_signal(signal.SIGINT)
    child.wait(60)
    with open(os.path.join(place, "err"), "rb") as err:
        said = err.read()
    outcome = Outcome(child.returncode, time.monotonic() - begin, 0, 0, b"", said)
    if not lived or child.returncode != 130:
        outcome.faults.append("code")
    if len(said.splitlines()) > 4:  # the interrupt's own, and at most one of the stranger
        outcome.faults.append("long line")
    if processes and not (known["private"] and len(known["processes"]) >= 4):
        allowed.append("found nothing to try: " + json.dumps(known))
    leftovers = [path for path in belongs_to(owner) if path not in before and path != home]
    for fault in allowed + [f"left behind: {path}" for path in leftovers]:
        outcome.faults.append("lost")
        print(f"another user: {fault}", file=table.kept, flush=True)
    tried = 5 * len(known["processes"]) + 3 * len(known["private"] + known["private files"])
    tried += 2 * len(known["files"] + known["folders"]) + 20 * len(known["ports"])
    print(f"another user, {kind}: {tried} tries, {len(allowed)} allowed, {len(known['ports'])} ports", file=sys.stderr)
    table.add("another user", outcome, f"{kind}, {tried} tries")


def squat(program, home, table, owner, other):
    """Folders and links of a stranger's with names like ours: nothing is written through them, none is taken away."""
    place = os.path.join(home, "squat")
    os.mkdir(place, 0o755)
    shutil.copy(os.path.join(home, "text.txt"), place)
    victim = os.path.join(place, "victim")
    with open(victim, "w") as file:
        file.write("mine\n")
    os.chown(place, owner, owner)
    os.chown(victim, owner, owner)
    planted = []
    for base in ["/dev/shm", "/tmp"]:
        for number in range(3):
            folder = os.path.join(base, f"trivium-run-{number}{os.getpid() % 100000:05}")
            os.mkdir(folder)
            for name in [".lock", "flight", "loopback.so"]:
                os.symlink(victim, os.path.join(folder, name))
                os.lchown(os.path.join(folder, name), other, other)
            os.chown(folder, other, other)
            planted.append(folder)
    words = [program, *TRAINING, "2", *PROCESSES]
    environment = {"PATH": os.environ["PATH"], "HOME": place, "TMPDIR": "/tmp", "TRIVIUM_DATA_DIR": home}
    ended = subprocess.run(words, cwd=place, env=environment, user=owner, group=owner, extra_groups=[], umask=0o022,
                           capture_output=True, check=False)
    outcome = Outcome(ended.returncode, 0, 0, 0, b"", ended.stderr)
    if ended.returncode != 0:
        outcome.faults.append("code")
    with open(victim) as file:
        if file.read() != "mine\n" or not all(len(os.listdir(folder)) == 3 for folder in planted):
            outcome.faults.append("lost")
    for folder in planted:
        shutil.rmtree(folder)
    table.add("another user", outcome, "folders of a stranger's with names like ours")


def attack(program, place, table):
    if os.geteuid() != 0:
        print("another user: left out, as only root can become two users", file=sys.stderr)
        return
    users = [entry for entry in pwd.getpwall() if 0 < entry.pw_uid < 65535]
    if len(users) < 2:
        print("another user: left out, as this machine has no two users besides root", file=sys.stderr)
        return
    owner, other = users[-1].pw_uid, users[-2].pw_uid
    # Outside of folders that only root may enter, with the program and the files next to it.
    home = tempfile.mkdtemp(prefix="trivium-strangers-", dir="/tmp")
    try:
        os.chmod(home, 0o755)
        root = os.path.dirname(os.path.dirname(os.path.realpath(program)))
        tree = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        for source in [os.path.join(root, "bin"), os.path.join(root, "lib"), os.path.join(tree, "models"),
                       os.path.join(tree, "hardware_profiles")]:
            if os.path.isdir(source):
                shutil.copytree(source, os.path.join(home, os.path.basename(source)))
        with open(os.path.join(home, "text.txt"), "w") as text:
            text.writelines(f"In the beginning was the Word, and line {i}.\n" for i in range(200))
        own = os.path.join(home, "bin", os.path.basename(program))
        training = [own, *TRAINING, "1000000"]
        meet(home, table, owner, other, "threads", training)
        if not shutil.which("mpirun"):
            print("another user: --processes is left out, as there is no mpirun", file=sys.stderr)
            return
        training += [*PROCESSES, "--flight-record", "fl"]
        meet(home, table, owner, other, "processes", training)
        if subprocess.run([*IN_THIS_NETWORK, "true"], user=owner, group=owner, extra_groups=[], capture_output=True,
                          check=False).returncode == 0:
            meet(home, table, owner, other, "processes in this network", IN_THIS_NETWORK + training)
        squat(own, home, table, owner, other)
    finally:
        shutil.rmtree(home)
