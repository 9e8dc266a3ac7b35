//! The life of a session: operations as they are submitted, one after another.

use super::context::Suspender;
use super::session::Session;
use assay_run::engine::{Op, OpError};
use std::rc::Rc;

impl Session<'_> {
    /// Performs operations as they are submitted, for ever.
    pub(crate) async fn serve(mut self) {
        loop {
            let shell = Rc::clone(&self.shell);
            let slot = shell.slot(self.tag);
            if slot.log_off.take() {
                let result = self.log_off().await;
                slot.outcome.set(Some(result));
                continue;
            }
            let Some(op) = slot.op.take() else {
                Suspender::default().await;
                continue;
            };
            let result = match op {
                Op::Select { schema, first_key, width } => self.select(schema, first_key, width).await,
                Op::Update { schema, first_key, width, stamp, commit } => {
                    let result = self.update(schema, first_key, width, stamp, commit).await;
                    if let Err(error) = &result {
                        // Half an update is in the cache and cannot be undone without recovery: nothing may go on.
                        shell.instance.fail(&error.text);
                        // Sessions queued behind this one's row locks must learn of it too.
                        self.end_transaction(&shell);
                    }
                    result
                }
                Op::Scan { schema } => self.scan(schema).await,
                Op::Call { .. } => Err(OpError::not_ours()),
            };
            slot.outcome.set(Some(result));
        }
    }
}
