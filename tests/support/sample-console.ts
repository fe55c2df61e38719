import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

/**
 * A sample console: a page with an embed and a backend that requests tokens with its own key. Uses only what
 * docs/embedding.md documents.
 */
export interface SampleConsole {
  port: number;
  /** Refuses the page's further token requests. */
  refuses: boolean;
  /** Number of token requests by the page. */
  readonly asked: number;
  close(): Promise<void>;
}

interface Options {
  port: number;
  /** The dashboard's public URL. */
  dashboard: string;
  /** The dashboard's URL for the backend. */
  api: string;
  /** The backend's API token. */
  key: string;
}

export async function startSampleConsole({ port, dashboard, api, key }: Options): Promise<SampleConsole> {
  let asked = 0;
  const state = { refuses: false };
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', `http://${request.headers.host}`);
    if (url.pathname === '/token') {
      asked += 1;
      return void giveToken(request, response, url, state.refuses);
    }
    const answer = PAGES[url.pathname]?.(dashboard, url.searchParams);
    if (answer === undefined) return void response.writeHead(404).end();
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', ...answer.headers }).end(answer.html);
  });

  /** Any signed-in console user may view; the backend decides the token's scope. */
  async function giveToken(request: IncomingMessage, response: ServerResponse, url: URL, refuses: boolean) {
    if (refuses) return void response.writeHead(403).end('not signed in to the console');
    const rubbish = url.searchParams.get('rubbish');
    if (rubbish !== null) return void response.writeHead(200).end(rubbish === 'none' ? '' : `ile_${'x'.repeat(43)}`);
    const parentOrigin = url.searchParams.get('parentOrigin') ?? `http://${request.headers.host}`;
    const tokenRequest = {
      ...(url.searchParams.has('session') ? { sessionId: url.searchParams.get('session') } : {}),
      ...(url.searchParams.has('agentLogs') ? { agentId: url.searchParams.get('agentLogs') } : {}),
      parentOrigin,
      ...(url.searchParams.has('session') || url.searchParams.has('agentLogs') ? {} : { fleet: true }),
      ttlSeconds: Number(url.searchParams.get('ttl') ?? 300),
      role: url.searchParams.get('mayAct') === '1' ? 'operator' : 'viewer',
    };
    const answer = await fetch(`${api}/api/v1/embed-tokens`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(tokenRequest),
    });
    const { token } = (await answer.json()) as { token: string };
    response.writeHead(200, { 'content-type': 'text/plain' }).end(token);
  }

  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    port,
    get refuses() {
      return state.refuses;
    },
    set refuses(refuses) {
      state.refuses = refuses;
    },
    get asked() {
      return asked;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

type Page = (dashboard: string, params: URLSearchParams) => { html: string; headers?: Record<string, string> };

const STYLE =
  '<style>html{color-scheme:light dark}body{margin:0;font:14px system-ui;display:grid;grid-template-rows:auto 1fr;height:100vh}header{padding:10px 16px;border-bottom:1px solid #8886}#place{min-height:0}</style>';

/** Shows the requested embed with embed.js. `events` collects its events. */
const consolePage: Page = (dashboard, params) => ({
  html: `<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Acme console</title>${STYLE}
<header><b>Acme</b> deployments</header><div id="place"></div>
<script type="module">
import { mount } from ${JSON.stringify(`${dashboard}/embed.js`)};
const params = new URLSearchParams(location.search);
const of = params.has('session') ? { session: params.get('session') } : params.has('agentLogs') ? { agentLogs: params.get('agentLogs') } : { fleet: true };
window.events = [];
window.embed = mount(document.querySelector('#place'), {
  origin: ${JSON.stringify(dashboard)},
  ...of,
  theme: params.get('theme') ?? 'system',
  autoHeight: params.has('autoHeight'),
  ...(params.has('sandbox') ? { sandbox: params.get('sandbox') } : {}),
  getToken: async () => {
    const answer = await fetch('/token' + location.search);
    if (!answer.ok) throw new Error(await answer.text());
    return await answer.text();
  },
  onEvent: (event) => window.events.push(event),
});
</script>`,
  headers: headersOf(params),
});

function headersOf(params: URLSearchParams): Record<string, string> {
  if (params.has('isolated'))
    return { 'cross-origin-embedder-policy': 'require-corp', 'cross-origin-opener-policy': 'same-origin' };
  return params.has('null') ? { 'content-security-policy': 'sandbox allow-scripts' } : {};
}

const PAGES: Record<string, Page> = {
  '/': consolePage,
  /** The console inside a frame of another console. */
  '/around': (_dashboard, params) => ({
    html: `<!doctype html>${STYLE}<header>Outer</header><iframe id="inner" src="/?${params}" style="height:100%;width:100%"></iframe>`,
  }),
  /** A console without scripts that passes the token in the fragment. */
  '/fragment': (dashboard, params) => ({
    html: `<!doctype html>${STYLE}<header>Old console</header><iframe style="height:100%;width:100%" src="${dashboard}/embed/sessions/${params.get('session')}#token=${params.get('token')}"></iframe>`,
  }),
};
