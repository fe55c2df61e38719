import { connect } from 'node:net';
import { parseJson } from '@interlude/protocol/fields';
import { WebSocket } from 'ws';
import type { CodexLink, LinkEnd, LinkListener } from './codex-link';

/** A message, images included, is far below. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
const OPEN_WITHIN_MS = 10_000;
/** A server that does not answer a ping within this time has hung, or its machine has. */
const PING_MS = 15_000;
/** Nobody listens there. */
const NOBODY = new Set(['ENOENT', 'ECONNREFUSED']);

/** @returns why no connection can be made; null if a server listens on the path */
export function noListenerAt(path: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(null);
    });
    socket.once('error', (error) => resolve(reasonOf(error, path)));
  });
}

function reasonOf(error: NodeJS.ErrnoException, path: string): string {
  if (NOBODY.has(error.code ?? '')) return `no Codex listens on ${path}`;
  return `the connection to Codex broke (${error.code ?? error.message})`;
}

/**
 * The app-server that the operator's terminals use, over its Unix socket: WebSocket, one message a text frame.
 *
 * Failure: a frame that is no JSON is told and passed over; one that is too long ends the connection.
 *
 * @see `codex app-server --listen unix://`, @openai/codex 0.171.0
 */
export function openSocket(path: string, listener: LinkListener): CodexLink {
  const socket = new WebSocket('ws://localhost/', {
    createConnection: () => connect(path),
    maxPayload: MAX_MESSAGE_BYTES,
    perMessageDeflate: false,
    handshakeTimeout: OPEN_WITHIN_MS,
  });
  const waiting: string[] = [];
  let failure: NodeJS.ErrnoException | null = null;
  let isAlive = true;
  const ping = setInterval(() => {
    if (socket.readyState !== WebSocket.OPEN) return;
    if (!isAlive) return socket.terminate();
    isAlive = false;
    socket.ping();
  }, PING_MS);
  const alive = () => {
    isAlive = true;
  };
  socket.on('pong', alive);
  socket.on('open', () => {
    for (const text of waiting.splice(0)) socket.send(text);
  });
  socket.on('message', (data) => {
    alive();
    const text = String(data);
    const message = parseJson(text);
    if (message !== null) listener.onMessage(message);
    else listener.onTrouble(`Codex sent a frame that is not JSON: ${text.slice(0, 200)}`);
  });
  socket.on('error', (error: NodeJS.ErrnoException) => {
    failure ??= error;
  });
  const ended = new Promise<LinkEnd>((resolve) => {
    socket.on('close', (code) => {
      clearInterval(ping);
      const isServerGone = NOBODY.has(failure?.code ?? '');
      const reason = reasonOf(failure ?? new Error(isAlive ? String(code) : 'it does not answer'), path);
      resolve({ reason, exitCode: null, signal: null, isServerGone });
    });
  });
  return {
    pid: null,
    send(message) {
      const text = JSON.stringify(message);
      if (socket.readyState === WebSocket.CONNECTING) waiting.push(text);
      else if (socket.readyState === WebSocket.OPEN) socket.send(text);
    },
    close: () => socket.close(),
    kill: () => socket.terminate(),
    ended,
  };
}
