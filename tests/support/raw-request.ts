import { connect, type Socket } from 'node:net';

/** A response read from a bare socket, without the corrections of a client library. */
export interface RawAnswer {
  /** 0 if the connection closed without a response. */
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Sends bytes and reads until the server closes. Rejects if the server neither responds nor closes. */
export async function rawRequest(port: number, ...parts: (string | Uint8Array)[]): Promise<RawAnswer> {
  return parse(await rawAnswers(port, ...parts));
}

/** The same, returning all received bytes. */
export function rawAnswers(port: number, ...parts: (string | Uint8Array)[]): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    const chunks: Buffer[] = [];
    socket.setTimeout(10_000, () => {
      socket.destroy();
      reject(new Error(`no response in time, after: ${Buffer.concat(chunks).toString('latin1').slice(0, 300)}`));
    });
    socket.on('data', (chunk) => chunks.push(chunk));
    // the server may close before the refused body is sent; only the response counts
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(Buffer.concat(chunks)));
    for (const part of parts) socket.write(part);
  });
}

/** Opens a connection, sends a text and leaves it open. */
export function openSocket(port: number, text: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject).on('error', () => undefined);
      socket.write(text, () => resolve(socket));
    });
  });
}

function parse(bytes: Buffer): RawAnswer {
  const text = bytes.toString('latin1');
  const final = text.startsWith('HTTP/1.1 100') ? text.slice(text.indexOf('\r\n\r\n') + 4) : text;
  const headEnd = final.indexOf('\r\n\r\n');
  const [start = '', ...lines] = final.slice(0, Math.max(0, headEnd)).split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const rest = headEnd < 0 ? '' : Buffer.from(final.slice(headEnd + 4), 'latin1').toString('utf8');
  const body = headers['transfer-encoding'] === 'chunked' ? unchunk(rest) : rest;
  return { status: Number(/^HTTP\/1\.\d (\d{3})/.exec(start)?.[1] ?? 0), headers, body };
}

/** Chunks here are small: each fits on the line after its size. */
function unchunk(text: string): string {
  return text
    .replace(/^[0-9a-f]+\r\n/i, '')
    .replace(/\r\n0\r\n[\s\S]*$/, '')
    .replaceAll(/\r\n[0-9a-f]+\r\n/gi, '');
}
