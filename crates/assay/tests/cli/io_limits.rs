//! Storage jobs on hosts that refuse: threads, memory maps, io_uring.

use crate::common::{Place, Started};
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn more_clones_than_the_host_has_room_for_are_refused_with_the_limit() {
    let place = Place::new();
    for clones in ["20000", "65535"] {
        let ran = place
            .assay(&["io", "--no-record", "--name=a", "--ioengine=null", "--size=1m", &format!("--numjobs={clones}")])
            .code(3);
        assert!(ran.err.contains("vm.max_map_count is"), "{}", ran.err);
    }
}

/// The binary below another program that sets limits first.
fn below(place: &Place, launcher: &[&str], args: &[&str]) -> Command {
    let binary = place.command(args);
    let mut command = Command::new(launcher[0]);
    command
        .args(&launcher[1..])
        .arg(binary.get_program())
        .args(binary.get_args())
        .current_dir(place.path("."))
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// The kernel completes a write that reaches over the limit of a file's size short, and refuses the rest of it: what fio 3.33
/// says on the same file is `write offset=1050624, buflen=2048`, File too large, `short=0,1,0,0`.
#[test]
fn a_write_over_a_limit_of_size_is_short_and_its_rest_is_the_error() {
    let place = Place::new();
    let job = |engine: &str| {
        ["io", "--no-record", "--name=a", "--filename=data", "--size=2m", "--rw=write", "--bs=4k"]
            .map(str::to_owned)
            .into_iter()
            .chain([format!("--ioengine={engine}")])
            .collect::<Vec<_>>()
    };
    for engine in ["psync", "io_uring", "libaio"] {
        let job = job(engine);
        let job: Vec<&str> = job.iter().map(String::as_str).collect();
        place.assay(&job).code(0);
        // 1 MiB and half a block, in units of 1 KiB.
        let launcher = ["bash", "-c", "trap '' XFSZ; ulimit -f 1026; exec \"$0\" \"$@\""];
        let ran = Started::new(&mut below(&place, &launcher, &job)).ended().code(4);
        assert!(ran.out.contains("short=0,1,0,0"), "{engine}: {}", ran.out);
        let last = ran.errors().pop().expect("there is an error").to_owned();
        for part in ["offset 1050624, 2048 bytes", "File too large", "ulimit -f"] {
            assert!(last.contains(part), "{engine}: {last}");
        }
    }
}

#[test]
fn threads_that_the_host_refuses_are_the_hosts_to_mend() {
    // A cgroup of its own, where this host lets us make one.
    let group = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"]
        .map(|base| Path::new(base).join(format!("assay-test-{}", std::process::id())))
        .into_iter()
        .find(|group| {
            let made = std::fs::create_dir(group).is_ok();
            if made && std::fs::write(group.join("pids.max"), "20").is_ok() {
                return true;
            }
            let _ = std::fs::remove_dir(group);
            false
        });
    let Some(group) = group else {
        eprintln!("skipped: no cgroup with pids.max can be made here");
        return;
    };
    let place = Place::new();
    let script = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", group.display());
    let launcher = ["sh", "-ec", &script, "sh"];
    let jobs: [&[&str]; 2] = [
        &["io", "--no-record", "--name=a", "--ioengine=null", "--size=1m", "--numjobs=100"],
        &["sync", "--time", "1s", "."],
    ];
    let refused = Started::new(&mut below(&place, &launcher, jobs[0])).ended();
    let others = Started::new(&mut below(&place, &launcher, jobs[1])).ended();
    std::fs::remove_dir(&group).expect("empty again");
    assert_eq!(refused.code, 3, "{}", refused.err);
    assert!(refused.err.contains("pids.max"), "{}", refused.err);
    // Its streams are as many as the host allows, or it says so.
    assert!([0, 3].contains(&others.code), "{}", others.err);
}

/// Refuses `io_uring_setup` with EPERM, as container runtimes do (a seccomp filter of four instructions), and becomes the
/// program that is named behind it.
const WITHOUT_RING: &str = r#"
import ctypes, os, struct, sys
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 425), (6, 0, 0, 0x50000 | 1), (6, 0, 0, 0x7fff0000)]
text = b"".join(struct.pack("HBBI", *one) for one in code)
held = ctypes.create_string_buffer(text)
class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
program = Program(len(code), ctypes.cast(held, ctypes.c_void_p))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program), 0, 0):
    sys.exit(99)
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn without_io_uring_a_directory_is_measured_through_libaio_and_that_is_told() {
    let place = Place::new();
    let launcher = ["python3", "-c", WITHOUT_RING];
    let args = ["io", ".", "--size=16m", "--runtime=1"];
    let mut command = below(&place, &launcher, &args);
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: no python3 to set a seccomp filter");
        return;
    }
    let ran = Started::new(&mut command).ended();
    if ran.code == 99 {
        eprintln!("skipped: no seccomp filter can be set here");
        return;
    }
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let told = "assay uses libaio because io_uring cannot be used";
    assert!(ran.err.contains(told), "{}", ran.err);
    assert!(ran.out.contains("ioengine=libaio"), "{}", ran.out);
    assert!(ran.out.contains(told), "{}", ran.out);
    // Who names the engine gets that or an error.
    let named = ["io", "--no-record", "--name=a", "--size=1m", "--ioengine=io_uring"];
    let ran = Started::new(&mut below(&place, &launcher, &named)).ended();
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("io_uring cannot be used"), "{}", ran.err);
}
