const encoder = new TextEncoder();

/**
 * Whether two secrets are the same, in a time that does not tell where they differ: every code unit of the one that was
 * sent is looked at. Their length is no secret. In plain JavaScript, because it runs for every request and a digest
 * from crypto.subtle is a trip through the thread pool.
 */
export function sameSecret(sent: string, ours: string): boolean {
  let difference = sent.length ^ ours.length;
  for (let index = 0; index < sent.length; index++) {
    difference |= sent.charCodeAt(index) ^ ours.charCodeAt(index % ours.length);
  }
  return ours.length > 0 && difference === 0;
}

/** HMAC-SHA-256 of `message` under `secret`, in base64url without padding. */
export async function keyedDigest(secret: string, message: string): Promise<string> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), algorithm, false, ['sign']);
  const digest = new Uint8Array(await crypto.subtle.sign('HMAC', key, encoder.encode(message)));
  return btoa(String.fromCharCode(...digest))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}
