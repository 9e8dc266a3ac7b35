//! Reads and writes at each path of the data set, counted when requests complete.
//!
//! Every ring counts by file; here files become rows of path and file type. The few writes that
//! bypass the rings (headers of log files, the control file) are added by hand.

use crate::control_file::ControlFile;
use crate::files::Files;
use assay_block::FileCounters;
use assay_measure::locked::locked;
use assay_measure::snapshot::{PathReading, StatSet, merge_rows};
use std::path::Path;
use std::sync::{Mutex, OnceLock};

/// A row of the table: one path and one type of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row(usize);

/// The rows of a data set.
pub(crate) struct PathIo {
    /// Path and file type of each row.
    rows: Vec<(String, &'static str)>,
    row_of_file: Vec<Row>,
    /// Disks below, by row, once they were requested.
    devices: OnceLock<Vec<String>>,
    /// Blocking writes by row.
    blocking: Mutex<Vec<FileCounters>>,
}

impl PathIo {
    pub(crate) fn new(files: &Files, control: &ControlFile) -> Self {
        let place = |path: &Path| path.display().to_string();
        // The control file of a device has no name of its own: the device is its place.
        let home = match control.path().file_name() {
            Some(name) if name == crate::control::CONTROL_NAME => {
                control.path().parent().map(place).unwrap_or_default()
            }
            _ => place(control.path()),
        };
        let mut rows = vec![(home, "Control File")];
        let row_of_file = (0..)
            .zip(&files.list)
            .map(|(file, _)| {
                let kind = match file {
                    _ if file < files.undo => "Data File",
                    _ if file == files.undo => "Undo File",
                    _ => "Log File",
                };
                let path = files.path(file).parent().map(place).unwrap_or_default();
                let known = rows.iter().position(|row| *row == (path.clone(), kind));
                Row(known.unwrap_or_else(|| {
                    rows.push((path, kind));
                    rows.len() - 1
                }))
            })
            .collect();
        Self {
            blocking: Mutex::new(vec![FileCounters::default(); rows.len()]),
            devices: OnceLock::new(),
            row_of_file,
            rows,
        }
    }

    /// Looks up the disks below the paths; without it rows name none.
    pub(crate) fn find_devices(&self) {
        self.devices.get_or_init(|| {
            let disk = |(path, _): &(String, _)| assay_block::device_facts(Path::new(path)).disk;
            self.rows.iter().map(|row| disk(row).unwrap_or_default()).collect()
        });
    }

    /// The row of a file.
    pub(crate) fn row_of(&self, file: u16) -> Row {
        self.row_of_file[usize::from(file)]
    }

    /// The row of the control file.
    pub(crate) fn control_row(&self) -> Row {
        Row(0)
    }

    /// A write that went past the rings.
    pub(crate) fn wrote(&self, row: Row, bytes: u64) {
        let mut blocking = locked(&self.blocking);
        blocking[row.0].write_requests += 1;
        blocking[row.0].write_bytes += bytes;
    }

    /// Adds what one ring did, by file.
    pub(crate) fn export(&self, ring: &[FileCounters], into: &mut StatSet) {
        let mut sums = vec![FileCounters::default(); self.rows.len()];
        for (row, file) in self.row_of_file.iter().zip(ring) {
            let sum = &mut sums[row.0];
            sum.read_requests += file.read_requests;
            sum.read_bytes += file.read_bytes;
            sum.write_requests += file.write_requests;
            sum.write_bytes += file.write_bytes;
        }
        self.add(&sums, into);
    }

    /// Adds the writes that went past the rings.
    pub(crate) fn export_blocking(&self, into: &mut StatSet) {
        let blocking = locked(&self.blocking);
        self.add(&blocking, into);
    }

    fn add(&self, sums: &[FileCounters], into: &mut StatSet) {
        for (number, ((path, file_type), sum)) in self.rows.iter().zip(sums).enumerate() {
            let device = self.devices.get().and_then(|devices| devices.get(number));
            merge_rows(
                &mut into.paths,
                &[PathReading {
                    path: path.clone(),
                    file_type: (*file_type).to_owned(),
                    device: device.cloned().unwrap_or_default(),
                    read_requests: sum.read_requests,
                    read_bytes: sum.read_bytes,
                    write_requests: sum.write_requests,
                    write_bytes: sum.write_bytes,
                }],
            );
        }
    }
}
