/**
 * What a page may load and run. What agents write is hostile: should any of it ever get past the renderer, there is
 * still no inline script, no foreign host to load from or send to, no frame and no form target for it to use.
 *
 * @param nonce fresh for every response, in base64
 * @param framedBy the origins whose pages may show it in a frame: none, but for embeds
 * @param isDevelopment Next's development server evaluates code and talks to itself over a WebSocket
 */
export function contentPolicy(nonce: string, isDevelopment: boolean, framedBy: readonly string[] = []): string {
  return [
    "default-src 'self'",
    `script-src 'self' 'nonce-${nonce}' 'strict-dynamic'${isDevelopment ? " 'unsafe-eval'" : ''}`,
    `style-src 'self' ${isDevelopment ? "'unsafe-inline'" : `'nonce-${nonce}'`}`,
    // Measured heights and virtual offsets stand in style attributes, which can load nothing under the rest of this.
    "style-src-attr 'unsafe-inline'",
    // `blob:` is what the page itself has been given, to be seen before it is sent: only its own code makes such addresses.
    "img-src 'self' data: blob:",
    "font-src 'self'",
    `connect-src 'self'${isDevelopment ? ' ws:' : ''}`,
    "worker-src 'self'",
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'self'",
    `frame-ancestors ${framedBy.length === 0 ? "'none'" : framedBy.join(' ')}`,
  ].join('; ');
}

export function makeNonce(): string {
  return btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(16))));
}
