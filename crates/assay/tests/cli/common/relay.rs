//! A relay on loopback between a client and a server: another machine's distance, its silences and its end.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Passes on what either side says, later. Its threads end with the connections.
pub(crate) struct Relay {
    port: u16,
    control: Arc<Control>,
}

#[derive(Default)]
struct Control {
    /// Added each way.
    delay_ns: AtomicU64,
    /// Bytes read from either side.
    heard: AtomicU64,
    is_stalled: AtomicBool,
    is_over: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Relay {
    /// To a server on this port of loopback, without delay.
    pub(crate) fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port for the relay");
        let port = listener.local_addr().expect("its address").port();
        let control = Arc::new(Control::default());
        let shared = Arc::clone(&control);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if shared.is_over.load(Ordering::Acquire) {
                    return;
                }
                let Ok(client) = client else { continue };
                if let Ok(server) = TcpStream::connect(("127.0.0.1", server)) {
                    shared.join(&client, &server);
                }
            }
        });
        Self { port, control }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Passes on one client's datagrams too, but loses every so manieth of at least this size; the numbers of those it passed
    /// on. What its kernel dropped for want of room is not among them either.
    pub(crate) fn losing_datagrams(&self, server: u16, every: u64, bytes: usize) -> Arc<Mutex<Vec<u64>>> {
        let near = UdpSocket::bind(("127.0.0.1", self.port)).expect("the relay's port");
        let far = UdpSocket::bind("127.0.0.1:0").expect("a port");
        far.connect(("127.0.0.1", server)).expect("the server");
        for socket in [&near, &far] {
            // Its threads see the end of the test.
            let patience = Some(Duration::from_millis(100));
            socket.set_read_timeout(patience).expect("set");
        }
        let numbers = Arc::new(Mutex::new(Vec::new()));
        let (passed_on, control) = (Arc::clone(&numbers), Arc::clone(&self.control));
        std::thread::spawn(move || {
            let (back, answered) = (near.try_clone().expect("a copy"), far.try_clone().expect("a copy"));
            let client = Arc::new(Mutex::new(None));
            let (known, over) = (Arc::clone(&client), Arc::clone(&control));
            std::thread::spawn(move || {
                let mut buffer = [0; 1 << 16];
                while !over.is_over.load(Ordering::Acquire) {
                    let Ok(count) = answered.recv(&mut buffer) else {
                        continue;
                    };
                    if let Some(client) = *known.lock().expect("not poisoned") {
                        let _ = back.send_to(&buffer[..count], client);
                    }
                }
            });
            let (mut buffer, mut seen) = ([0; 1 << 16], 0);
            while !control.is_over.load(Ordering::Acquire) {
                let Ok((count, from)) = near.recv_from(&mut buffer) else {
                    continue;
                };
                *client.lock().expect("not poisoned") = Some(from);
                let is_data = count >= bytes;
                seen += u64::from(is_data);
                if is_data && seen % every == 0 {
                    continue;
                }
                // Whoever reads the list finds in it what was sent, and one that the kernel refused is lost here.
                let mut passed_on = passed_on.lock().expect("not poisoned");
                if far.send(&buffer[..count]).is_ok() && is_data {
                    // After seconds and microseconds; assay's own counters are of 64 bits.
                    let number = u64::from_be_bytes(buffer[8..16].try_into().expect("eight bytes"));
                    assert!(number > passed_on.last().copied().unwrap_or(0), "{number} is no number that comes next");
                    passed_on.push(number);
                }
            }
        });
        numbers
    }

    /// Bytes that either side has said so far.
    pub(crate) fn heard(&self) -> u64 {
        self.control.heard.load(Ordering::Acquire)
    }

    /// Delays what is read from now on by so much each way: a round trip takes twice as much longer.
    pub(crate) fn delay(&self, each_way: Duration) {
        let ns = each_way.as_nanos() as u64;
        self.control.delay_ns.store(ns, Ordering::Release);
    }

    /// Passes nothing on until told otherwise; nothing is lost.
    pub(crate) fn stall(&self, is_stalled: bool) {
        self.control.is_stalled.store(is_stalled, Ordering::Release);
    }

    /// Closes every connection, as a machine does that goes down.
    pub(crate) fn cut(&self) {
        for stream in self.control.open.lock().expect("not poisoned").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.control.is_over.store(true, Ordering::Release);
        self.cut();
        // Wakes the listener, which then goes.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Control {
    fn join(self: &Arc<Self>, client: &TcpStream, server: &TcpStream) {
        let copy = |stream: &TcpStream| stream.try_clone().expect("a descriptor for the relay");
        for stream in [client, server] {
            let _ = stream.set_nodelay(true);
        }
        let mut open = self.open.lock().expect("not poisoned");
        open.extend([copy(client), copy(server)]);
        drop(open);
        for (from, to) in [(client, server), (server, client)] {
            let (from, to) = (copy(from), copy(to));
            let (sender, receiver) = channel();
            let reading = Arc::clone(self);
            let writing = Arc::clone(self);
            std::thread::spawn(move || reading.read(from, &sender));
            std::thread::spawn(move || writing.write(to, &receiver));
        }
    }

    fn read(&self, mut from: TcpStream, sender: &Sender<(Instant, Vec<u8>)>) {
        let mut buffer = vec![0; 256 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            self.heard.fetch_add(count as u64, Ordering::AcqRel);
            let delay = Duration::from_nanos(self.delay_ns.load(Ordering::Acquire));
            let due = Instant::now() + delay;
            if sender.send((due, buffer[..count].to_vec())).is_err() {
                return;
            }
        }
    }

    fn write(&self, mut to: TcpStream, receiver: &Receiver<(Instant, Vec<u8>)>) {
        while let Ok((due, bytes)) = receiver.recv() {
            let is_over = || self.is_over.load(Ordering::Acquire);
            while self.is_stalled.load(Ordering::Acquire) && !is_over() {
                std::thread::sleep(Duration::from_millis(1));
            }
            // A sleep lasts up to a tenth of a millisecond longer than asked for, and who yields to a busy process waits a
            // whole slice of it.
            const LATE: Duration = Duration::from_micros(100);
            let left = due.saturating_duration_since(Instant::now());
            if left > LATE {
                std::thread::sleep(left - LATE);
            }
            while Instant::now() < due {
                std::hint::spin_loop();
            }
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    }
}

#[test]
fn a_relay_delays_stalls_and_cuts() {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let relay = Relay::to(server.local_addr().expect("its address").port());
    let mut client = TcpStream::connect(("127.0.0.1", relay.port())).expect("connected");
    let mut far = server.accept().expect("passed on").0;
    let mut there_and_back = || {
        let begun = Instant::now();
        client.write_all(b"ping").expect("sent");
        let mut heard = [0; 4];
        far.read_exact(&mut heard).expect("passed on");
        far.write_all(&heard).expect("answered");
        client.read_exact(&mut heard).expect("passed back");
        assert_eq!(&heard, b"ping");
        begun.elapsed()
    };
    there_and_back();
    relay.delay(Duration::from_millis(20));
    assert!(there_and_back() >= Duration::from_millis(40));
    relay.stall(true);
    client.write_all(b"x").expect("taken");
    far.set_read_timeout(Some(Duration::from_millis(200))).expect("set");
    assert!(far.read(&mut [0]).is_err(), "nothing comes through");
    relay.stall(false);
    far.set_read_timeout(None).expect("set");
    assert_eq!(far.read(&mut [0]).expect("then it does"), 1);
    relay.cut();
    assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
}
