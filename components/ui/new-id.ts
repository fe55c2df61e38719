/** A random 128-bit id. `crypto.randomUUID` needs a secure context, and a dashboard may run on plain HTTP. */
export function newId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
