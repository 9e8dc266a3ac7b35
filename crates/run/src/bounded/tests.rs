use super::*;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

const ALL: [Kind; 14] = [
    RECORD,
    CATALOGUE,
    TAGS,
    SERIES,
    JOURNAL,
    PAGE,
    OPTIONS,
    CERTIFICATES,
    CONTENT,
    CONFIGURATION,
    PRICES,
    JOBS,
    SECRET,
    OUTPUT,
];

fn refused(path: &Path, kind: Kind) -> String {
    let error = read(path, kind).expect_err("refused");
    error.to_string()
}

#[test]
fn what_is_no_regular_file_is_refused_by_what_it_is_and_nothing_is_waited_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |name: &str| dir.path().join(name);
    rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
    symlink("/dev/zero", at("endless")).expect("a link");
    symlink(at("pipe"), at("link")).expect("a link");
    let _socket = UnixListener::bind(at("socket")).expect("a socket");
    for kind in ALL {
        for (name, what) in [
            ("pipe", "is a named pipe, not"),
            ("link", "is a named pipe, not"),
            ("endless", "is a device, not"),
            ("socket", "is a socket, not"),
            (".", "is a directory, not"),
        ] {
            let said = refused(&at(name), kind);
            assert!(said.starts_with(what) && said.contains(kind.what), "{said}");
            assert!(said.contains("; name a regular file"), "{said}");
        }
        assert_eq!(read(&at("absent"), kind).expect_err("absent").kind(), ErrorKind::NotFound);
    }
}

#[test]
fn a_file_beyond_its_kind_is_refused_before_it_is_read_and_one_at_its_limit_is_not() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("file");
    for kind in ALL.into_iter().filter(|kind| *kind != CONTENT) {
        let file = File::create(&path).expect("made");
        file.set_len(kind.most_bytes + 1).expect("sparse");
        let said = refused(&path, kind);
        assert!(said.contains(&format!("(at most {})", size(kind.most_bytes))), "{said}");
        file.set_len(kind.most_bytes).expect("sparse");
        assert!(open(&path, kind).is_ok(), "{kind:?}");
    }
    // A file of the kernel says that it has nothing, and so does a pipe: what comes is counted.
    let said = stream(io::repeat(b'x'), SECRET).expect_err("endless").to_string();
    assert!(said.starts_with("has more than 4 KiB, so it is not a secret"), "{said}");
    std::fs::write(&path, vec![b'x'; 4096]).expect("written");
    let link = dir.path().join("link");
    symlink(&path, &link).expect("a link");
    assert_eq!(text(&link, SECRET).expect("what it leads to").len(), 4096);
    std::fs::write(&path, [0xff]).expect("written");
    assert_eq!(text(&path, SECRET).expect_err("no text").kind(), ErrorKind::InvalidData);
}

#[test]
fn the_pipe_of_a_shells_command_is_read_where_the_user_names_the_file() {
    let (from, to) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("a pipe");
    let path = Path::new("/proc/self/fd").join(from.as_raw_fd().to_string());
    assert!(refused(&path, RECORD).starts_with("is a named pipe"));
    let writer = std::thread::spawn(move || {
        // More than a pipe holds: its reader has to wait for the rest.
        File::from(to).write_all(&vec![b'x'; 300_000]).expect("written");
    });
    assert_eq!(text(&path, JOBS).expect("read").len(), 300_000);
    writer.join().expect("done");
}
