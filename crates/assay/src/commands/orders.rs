//! `orders`: the commands of a data set and of a run, on the data sets of order entry.

use super::{data, run, sweep};
use crate::cli::{OrdersArgs, OrdersCommand};
use crate::exit::{Code, Failure};

pub(super) fn orders(args: OrdersArgs) -> Result<Code, Failure> {
    match args.command {
        OrdersCommand::Prepare(args) => data::prepare(&args.into()),
        OrdersCommand::Run(args) => run::run(&args.into()),
        OrdersCommand::Sweep(args) => sweep::sweep(&args.into()),
        OrdersCommand::Check(args) => data::check(&args.into()),
        OrdersCommand::Destroy(args) => data::destroy(&args.into()),
    }
}
