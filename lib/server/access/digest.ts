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
