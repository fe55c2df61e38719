/**
 * `@interlude/embed`: shows a session, an agent's log or the list of sessions of an Interlude server in an element of
 * this page. No dependencies; docs/embedding.md says what goes back and forth.
 *
 * @typedef {'light' | 'dark' | 'system'} Theme
 *
 * @typedef {{ fleet: true } | { session: string, anchor: string | null } | { agent: string } |
 *   { agentLogs: string, anchor: string | null }} Place
 *
 * @typedef {{ type: 'state', state: 'connected' | 'signed-out' | 'error', message: string | null } |
 *   { type: 'navigate', to: Place, path: string, url: string } |
 *   { type: 'height', height: number } |
 *   { type: 'token-error', message: string, retryInMs: number }} EmbedEvent
 *
 * @typedef {object} EmbedOptions
 * @property {string} origin the Interlude server's: "https://interlude.example.com", with its path if it is beneath one
 * @property {string} [session] the id of the session to show, or
 * @property {string} [agentLogs] the id of the agent whose log to show, or
 * @property {boolean} [fleet] to show the list of sessions
 * @property {() => Promise<string> | string} getToken asks this page's own backend for an embed token. Called at the
 *   beginning, before each one ends and when one is refused; no token is kept here
 * @property {Theme} [theme] "system" unless given
 * @property {boolean | { min?: number, max?: number }} [autoHeight] makes the frame as high as its content, in CSS
 *   pixels between `min` (160) and `max` (2000). Else the frame fills the element, whose height is its own
 * @property {string} [sandbox] for the frame's `sandbox` attribute, which must have `allow-scripts`; without
 *   `allow-popups` its links open nowhere. Without `allow-same-origin` it is connected once, and not after a reload
 * @property {string} [title] what a screen reader calls the frame
 * @property {(event: EmbedEvent) => void} [onEvent]
 *
 * @typedef {object} Embed
 * @property {(theme: Theme) => void} setTheme
 * @property {() => void} destroy takes the frame away
 */

const VERSION = 1;
/** A frame that says nothing for so long was not let in by its server, which only the browser's console tells. */
const SILENT_MS = 10_000;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 30_000;

/**
 * @param {Element} element
 * @param {EmbedOptions} options
 * @returns {Embed}
 */
export function mount(element, options) {
  const { getToken, autoHeight = false } = options;
  const { origin, pathname } = new URL(options.origin);
  const server = origin + pathname.replace(/\/+$/, '');
  const say = options.onEvent ?? (() => {});
  let theme = options.theme ?? 'system';
  /** @type {MessagePort | null} */
  let port = null;
  let isOver = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let retry;
  let failures = 0;
  let isAsking = false;

  const frame = document.createElement('iframe');
  frame.title = options.title ?? 'Interlude';
  frame.allow = 'clipboard-write';
  if (options.sandbox !== undefined) frame.setAttribute('sandbox', options.sandbox);
  frame.style.cssText = 'display:block;width:100%;border:0;color-scheme:light dark';
  frame.style.height = autoHeight ? `${limits(autoHeight).min}px` : '100%';
  frame.src = `${server}${pathOf(options)}?theme=${theme}`;

  async function giveToken() {
    if (isAsking || isOver) return;
    isAsking = true;
    clearTimeout(retry);
    try {
      const token = await getToken();
      failures = 0;
      port?.postMessage({ type: 'token', token });
    } catch (error) {
      failures += 1;
      const message = error instanceof Error ? error.message : String(error);
      const ceilingMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** (failures - 1));
      const retryInMs = Math.round((ceilingMs * (1 + Math.random())) / 2);
      if (isOver) return;
      port?.postMessage({ type: 'no-token', reason: message });
      retry = setTimeout(giveToken, retryInMs);
      say({ type: 'token-error', message, retryInMs });
    } finally {
      isAsking = false;
    }
  }

  /** @param {MessageEvent} event */
  function hear({ data }) {
    if (isOver || typeof data !== 'object' || data === null) return;
    if (data.type === 'need-token') void giveToken();
    else if (data.type === 'navigate') say({ ...data, url: server + data.path });
    else if (data.type === 'height' && autoHeight) {
      const { min, max } = limits(autoHeight);
      frame.style.height = `${Math.min(max, Math.max(min, Number(data.height) || 0))}px`;
      say(data);
    } else if (data.type === 'state') say(data);
  }

  /** @param {MessageEvent} event */
  function greet({ source, origin: from, data }) {
    if (source !== frame.contentWindow || typeof data !== 'object' || data === null) return;
    // A sandboxed frame has no origin to know it by. What it loaded first is ours; what it may have gone to since is not.
    const isSandboxed = from === 'null' && hasNoOrigin(frame) && port === null;
    if ((from !== origin && !isSandboxed) || data.interlude !== 'ready') return;
    if (data.version !== VERSION) {
      say({
        type: 'state',
        state: 'error',
        message: `The server speaks version ${data.version} of the embed's messages, and this embed.js version ${VERSION}. Load embed.js from the server itself.`,
      });
      return;
    }
    clearTimeout(silent);
    const channel = new MessageChannel();
    port?.close();
    port = channel.port1;
    port.onmessage = hear;
    const connect = { interlude: 'connect', nonce: data.nonce, theme, height: autoHeight !== false };
    frame.contentWindow?.postMessage(connect, isSandboxed ? '*' : origin, [channel.port2]);
  }

  const silent = setTimeout(() => {
    const message = `Nothing came from ${server}. See that it runs, and that ${location.origin} is among the origins that may embed it (INTERLUDE_EMBED_ORIGINS); the browser's console tells more.`;
    say({ type: 'state', state: 'error', message });
  }, SILENT_MS);
  addEventListener('message', greet);
  element.append(frame);

  return {
    setTheme(next) {
      theme = next;
      port?.postMessage({ type: 'theme', theme });
    },
    destroy() {
      isOver = true;
      clearTimeout(retry);
      clearTimeout(silent);
      removeEventListener('message', greet);
      port?.close();
      frame.remove();
    },
  };
}

/** @param {EmbedOptions} options */
function pathOf({ session, agentLogs, fleet }) {
  if (session !== undefined) return `/embed/sessions/${encodeURIComponent(session)}`;
  if (agentLogs !== undefined) return `/embed/agents/${encodeURIComponent(agentLogs)}/logs`;
  if (fleet) return '/embed/fleet';
  throw new TypeError('Say what to show: session, agentLogs or fleet.');
}

/** @param {true | { min?: number, max?: number }} autoHeight */
function limits(autoHeight) {
  const { min = 160, max = 2000 } = autoHeight === true ? {} : autoHeight;
  return { min, max };
}

/** @param {HTMLIFrameElement} frame */
function hasNoOrigin(frame) {
  return frame.hasAttribute('sandbox') && !frame.sandbox.contains('allow-same-origin');
}
