//! Proofs of a password for the plugins of both servers; a proof does not reveal the password.

use crate::certificate::element;
use assay_run::bounded;
use curve25519_dalek::scalar::clamp_integer;
use curve25519_dalek::{EdwardsPoint, Scalar};
use num_bigint::BigUint;
use ring::digest::{Algorithm, Context, Digest, SHA1_FOR_LEGACY_USE_ONLY as SHA1, SHA256, SHA512};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;
use std::path::Path;

/// Bytes of a SHA-1 hash.
const SHA1_BYTES: usize = 20;
/// Sizes of a server's key: 1024 to 16384 bits.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 128..=2048;

fn hash(by: &'static Algorithm, parts: &[&[u8]]) -> Digest {
    let mut hash = Context::new(by);
    for part in parts {
        hash.update(part);
    }
    hash.finish()
}

fn xor<'a>(bytes: &[u8], with: impl IntoIterator<Item = &'a u8>) -> Vec<u8> {
    bytes.iter().zip(with).map(|(byte, with)| byte ^ with).collect()
}

/// `mysql_native_password`
pub(super) fn native(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let once = hash(&SHA1, &[password]);
    let twice = hash(&SHA1, &[once.as_ref()]);
    xor(once.as_ref(), hash(&SHA1, &[nonce, twice.as_ref()]).as_ref())
}

/// `caching_sha2_password`, from the server's cache.
pub(super) fn sha2(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let once = hash(&SHA256, &[password]);
    let twice = hash(&SHA256, &[once.as_ref()]);
    xor(once.as_ref(), hash(&SHA256, &[twice.as_ref(), nonce]).as_ref())
}

/// `client_ed25519`: an RFC 8032 signature whose secret is the hash of a password of any length.
pub(super) fn ed25519(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let wide = |parts: &[&[u8]]| {
        let mut bytes = [0; 64];
        bytes.copy_from_slice(hash(&SHA512, parts).as_ref());
        bytes
    };
    let hashed = wide(&[password]);
    let (secret, prefix) = hashed.split_at(32);
    let mut clamped = [0; 32];
    clamped.copy_from_slice(secret);
    let secret = Scalar::from_bytes_mod_order(clamp_integer(clamped));
    let public = EdwardsPoint::mul_base(&secret).compress();
    let once = Scalar::from_bytes_mod_order_wide(&wide(&[prefix, nonce]));
    let point = EdwardsPoint::mul_base(&once).compress();
    let bound = Scalar::from_bytes_mod_order_wide(&wide(&[point.as_bytes(), public.as_bytes(), nonce]));
    [point.to_bytes(), (bound * secret + once).to_bytes()].concat()
}

/// `caching_sha2_password` for a user who is not in the server's cache: the password, encrypted for the owner of this key.
///
/// # Errors
/// What is wrong with the file.
pub(super) fn encrypted(password: &[u8], nonce: &[u8], key: &Path) -> Result<Vec<u8>, String> {
    let mut text = password.to_vec();
    text.push(0);
    let hidden = xor(&text, nonce.iter().cycle());
    let unfit = |why: &str| format!("server-public-key-path {}: {why}", key.display());
    let pem = bounded::read(key, bounded::CERTIFICATES).map_err(|error| unfit(&error.to_string()))?;
    let key = SubjectPublicKeyInfoDer::from_pem_slice(&pem).map_err(|error| unfit(&error.to_string()))?;
    let (modulus, exponent) = rsa_key(&key).ok_or_else(|| unfit("it must be a PEM file with a public key of RSA"))?;
    let mut seed = [0; SHA1_BYTES];
    SystemRandom::new().fill(&mut seed).map_err(|_| "the system has no random numbers".to_owned())?;
    let padded = padded(&hidden, &seed, modulus.len()).ok_or_else(|| unfit("the password is too long for this key"))?;
    let number = BigUint::from_bytes_be;
    let bytes = number(&padded).modpow(&number(exponent), &number(modulus)).to_bytes_be();
    Ok([vec![0; modulus.len() - bytes.len()], bytes].concat())
}

/// Modulus and exponent of a `SubjectPublicKeyInfo`.
fn rsa_key(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, body, _) = element(der)?;
    let (_, _algorithm, rest) = element(body)?;
    let (_, bits, _) = element(rest)?;
    // The bit string has no unused bits.
    let (_, pair, _) = element(bits.strip_prefix(&[0])?)?;
    let (_, modulus, rest) = element(pair)?;
    let (_, exponent, _) = element(rest)?;
    let modulus = &modulus[modulus.iter().position(|byte| *byte != 0)?..];
    (KEY_BYTES.contains(&modulus.len()) && exponent.len() <= 8).then_some((modulus, exponent))
}

/// OAEP of PKCS #1 with SHA-1, for a modulus of so many bytes.
fn padded(text: &[u8], seed: &[u8; SHA1_BYTES], bytes: usize) -> Option<Vec<u8>> {
    let zeroes = bytes.checked_sub(text.len() + 2 * SHA1_BYTES + 2)?;
    let block = [hash(&SHA1, &[]).as_ref(), &vec![0; zeroes], &[1], text].concat();
    let hidden = xor(&block, &mask(seed, block.len()));
    let seed = xor(seed, &mask(&hidden, SHA1_BYTES));
    Some([&[0], &seed[..], &hidden].concat())
}

/// MGF1 with SHA-1.
fn mask(seed: &[u8], bytes: usize) -> Vec<u8> {
    let blocks = (0_u32..).map(|n| hash(&SHA1, &[seed, &n.to_be_bytes()]));
    blocks.take(bytes.div_ceil(SHA1_BYTES)).flat_map(|block| block.as_ref().to_vec()).take(bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    /// As other implementations have them; the first signature is RFC 8032's.
    #[test]
    fn proofs_are_those_of_the_servers() {
        let nonce = bytes("4e523348503a714959615f393d64623f53647b60");
        let password = bytes("4721696465723237");
        assert_eq!(hex(&native(&password, &nonce)), "09cff8855e9e705340ff2270d8fb9fadba906b70");
        let cached = "4f97bbfd202401c42a69deaae53bda077ed7578563c1a80eb816c82119b68d2e";
        assert_eq!(hex(&sha2(&password, &nonce)), cached);
        let secret = bytes("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
        let signed = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b";
        assert_eq!(hex(&ed25519(&secret, b"")), signed);
        let nonce: Vec<u8> = (0..32).collect();
        let signed = "15b850956c15de59f927685de1d628476c138451d84705676f6fb16433e259c96ab314e146897062f6de89d161405298430710c392613dec9f14c4b3d0179b0f";
        assert_eq!(hex(&ed25519(b"foobar", &nonce)), signed);
    }

    /// What `openssl` makes of this in this directory.
    fn openssl(directory: &Path, words: &str, input: &[u8]) -> Vec<u8> {
        let mut child = Command::new("openssl")
            .args(words.split(' '))
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{words}");
        done.stdout
    }

    #[test]
    fn a_password_is_encrypted_for_the_owner_of_the_key_alone() {
        let made = tempfile::tempdir().unwrap();
        let at = made.path();
        openssl(at, "genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out private.pem", b"");
        openssl(at, "pkey -in private.pem -pubout -out public.pem", b"");
        let nonce: Vec<u8> = (1..=20).collect();
        let key = at.join("public.pem");
        for password in ["x y%", "a password that is longer than the nonce which hides it"] {
            let sent = encrypted(password.as_bytes(), &nonce, &key).unwrap();
            assert_ne!(sent, encrypted(password.as_bytes(), &nonce, &key).unwrap(), "no seed");
            let read = openssl(at, "pkeyutl -decrypt -inkey private.pem -pkeyopt rsa_padding_mode:oaep", &sent);
            assert_eq!(xor(&read, nonce.iter().cycle()), [password.as_bytes(), &[0]].concat());
        }
        let long = encrypted(&[b'x'; 300], &nonce, &key).unwrap_err();
        assert!(long.contains("too long for this key"), "{long}");
        openssl(at, "genpkey -algorithm ed25519 -out other.pem", b"");
        openssl(at, "pkey -in other.pem -pubout -out other.pub", b"");
        for (file, wanted) in
            [("other.pub", "public key of RSA"), ("private.pem", "server-public-key-path"), ("none", "none")]
        {
            let refused = encrypted(b"x", &nonce, &at.join(file)).unwrap_err();
            assert!(refused.contains(wanted), "{file}: {refused}");
        }
    }

    proptest! {
        #[test]
        fn any_file_is_a_key_or_is_none(mut der in proptest::collection::vec(any::<u8>(), 0..300), nested in any::<bool>()) {
            if nested {
                der = [&[0x30, 0x82, 1, 0, 0x30, 0, 3, 0x81, 250, 0, 0x30, 0x81, 246, 2, 0x81, 200], &der[..]].concat();
            }
            let _ = rsa_key(&der);
        }
    }
}
