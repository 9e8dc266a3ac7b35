use super::*;

/// The largest sets take a gigabyte and seconds each: their code is that of the smaller ones.
fn usual() -> impl Iterator<Item = &'static Kernel> {
    KERNELS.iter().filter(|kernel| !LARGE.contains(&kernel.name))
}

#[test]
fn cpu_04_checksums_are_the_constants_of_the_set() {
    let wrong: Vec<String> =
        usual().filter_map(|kernel| Ready::new(kernel).check().err()).map(|wrong| wrong.to_string()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn cpu_04_every_call_is_compared_with_what_its_chunk_gives() {
    for kernel in usual().filter(|kernel| kernel.in_soak) {
        let ready = Ready::new(kernel);
        let mut scratch = vec![0; ready.work.scratch_bytes()];
        for chunk in 0..ready.chunks() {
            assert_eq!(ready.call(chunk, &mut scratch), Ok(()), "{}", kernel.name);
        }
        let broken = ready.broken();
        let wrong = broken.call(0, &mut scratch).unwrap_err();
        assert_eq!(wrong.expected ^ wrong.found, 1 << 17);
        assert!(wrong.to_string().contains("(xor 0x0000000000020000)"), "{wrong}");
    }
}

#[test]
fn names_are_unique_and_units_are_counted() {
    for kernel in KERNELS {
        assert_eq!(KERNELS.iter().filter(|other| other.name == kernel.name).count(), 1);
        assert!(kernel.units_per_call > 0 && kernel.unit.ends_with('s'), "{}", kernel.name);
    }
}
