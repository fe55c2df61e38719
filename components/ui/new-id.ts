/** An id that nobody else has. Browsers make UUIDs only over TLS and on their own machine; a dashboard is used elsewhere, too. */
export function newId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
