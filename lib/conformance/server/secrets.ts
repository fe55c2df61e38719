import { request } from 'node:http';
import { request as requestSecurely } from 'node:https';
import { API_BASE } from '@interlude/protocol/version';
import { agree, type Check, hold } from '../check';
import { custom } from './played-agent';
import type { ServerStage } from './server-stage';

const WHY = '2, Access';

/** Every route of the API, with something in place of each id. */
const ROUTES: readonly [method: string, path: string][] = [
  ['POST', '/events'],
  ['GET', '/stream?topic=fleet'],
  ['GET', '/sessions'],
  ['GET', '/sessions/x'],
  ['GET', '/sessions/x/transcript'],
  ['GET', '/sessions/x/tasks'],
  ['GET', '/sessions/x/delivery'],
  ['GET', '/agents'],
  ['GET', '/agents/x'],
  ['GET', '/agents/x/commands'],
  ['POST', '/agents/x/commands/y/ack'],
  ['GET', '/agents/x/reply-obligations'],
  ['GET', '/agents/x/logs'],
  ['GET', '/agents/x/logs/download'],
  ['PUT', '/agents/x/log-level'],
  ['GET', '/inbox'],
  ['POST', '/inbox/marks'],
  ['GET', '/activity'],
  ['GET', '/webhook'],
  ['POST', '/sessions/x/messages'],
  ['POST', '/sessions/x/interrupt'],
  ['POST', '/sessions/x/requests/y'],
  ['PUT', '/sessions/x/arrangement'],
  ['DELETE', '/sessions/x'],
  ['GET', '/no/such/route'],
];

/** Not `fetch`, which keeps Host and Sec-Fetch-Site for itself. */
function raw(
  stage: ServerStage,
  path: string,
  headers: Record<string, string>,
  method = 'GET',
): Promise<{ status: number; headers: Record<string, unknown>; text: string }> {
  const url = new URL(stage.server.url + path);
  const send = url.protocol === 'https:' ? requestSecurely : request;
  return new Promise((resolve, reject) => {
    const sent = send(url, { method, headers, agent: false, signal: stage.patience.signal }, (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (chunk: string) => {
        text += chunk;
      });
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }));
      answer.on('error', reject);
    });
    sent.on('error', reject);
    sent.end();
  });
}

export const SECRETS: readonly Check<ServerStage>[] = [
  {
    group: 'secrets',
    name: 'no route answers without a credential, nor with a wrong one, whether or not there is such a route',
    why: WHY,
    async run(stage) {
      const expected = { status: 401, error: { code: 'unauthenticated' } };
      for (const headers of [{}, { authorization: 'Bearer not-the-token-at-all' }, { cookie: 'interlude=forged' }]) {
        for (const [method, path] of ROUTES) {
          const { status, body } = await stage.send(path, { method, headers: headers as Record<string, string> });
          const with_ = Object.keys(headers)[0] ?? 'nothing';
          agree(`${method} ${path} with ${with_}`, { status, ...body }, expected, 'Authenticate before routing.');
        }
      }
    },
  },
  {
    group: 'secrets',
    name: 'a token in an address opens nothing, and no answer repeats it',
    why: WHY,
    async run(stage) {
      const { token } = stage.server;
      for (const path of [
        `/sessions?token=${token}`,
        `/no/such/${token}`,
        `/stream?topic=fleet&access_token=${token}`,
      ]) {
        const without = await stage.send(path);
        agree(path.replace(token, '…'), { status: without.status }, { status: 401 }, 'Take it from the header only.');
        const hasIt = (text: string) => text.includes(token);
        hold(!hasIt(without.text), 'an answer without the token', 'it repeats it', 'Quote no query parameter values.');
      }
      const said = JSON.stringify([...(await stage.get('/agents')).headers]);
      hold(!said.includes(token), 'headers without the token', 'they repeat it', 'Never send the token back.');
    },
  },
  {
    group: 'secrets',
    name: 'whether it is alive and ready is open to anybody, and nothing else',
    why: WHY,
    async run(stage) {
      for (const path of ['/healthz', '/readyz']) {
        const { status } = await stage.send(path);
        agree(path, { status }, { status: 200 }, 'Serve it without a credential.');
      }
    },
  },
  {
    group: 'secrets',
    name: 'a page of another origin does nothing with the operator’s cookie, which is not the token',
    why: WHY,
    async run(stage) {
      const { token } = stage.server;
      const signedIn = await raw(stage, `/sign-in?token=${encodeURIComponent(token)}`, {});
      const [set = ''] = (signedIn.headers['set-cookie'] as string[] | undefined) ?? [];
      const cookie = set.split(';')[0] ?? '';
      hold(cookie !== '', 'a cookie', signedIn.status, 'Set one for the token of /sign-in.');
      hold(!set.includes(token), 'a cookie that is not the token', 'it is', 'Derive the cookie from the token.');
      hold(/httponly/i.test(set), 'a cookie no script can read', set.replace(cookie, '…'), 'Set HttpOnly.');
      const read = `${API_BASE}/sessions`;
      const own = await raw(stage, read, { cookie, 'sec-fetch-site': 'same-origin' });
      agree('a read by our own page', { status: own.status }, { status: 200 }, 'Take the cookie of a page of ours.');
      for (const site of ['cross-site', 'same-site']) {
        const { status } = await raw(stage, read, { cookie, 'sec-fetch-site': site });
        agree(`a read from ${site}`, { status }, { status: 403 }, 'Refuse it as cross_origin.');
      }
      const agent = stage.agent('cookie');
      await agent.tell(custom('x', {}));
      const commands = `${API_BASE}/agents/${encodeURIComponent(agent.id)}/commands`;
      const asRunner = await raw(stage, commands, { cookie, 'sec-fetch-site': 'same-origin' });
      agree('a runner by cookie', { status: asRunner.status }, { status: 401 }, 'Take the token only from runners.');
    },
  },
  {
    group: 'secrets',
    name: 'a request to another name is misdirected, whatever its credential',
    why: WHY,
    async run(stage) {
      const headers = { ...stage.authorized, host: 'attacker.example' };
      const { status, text } = await raw(stage, `${API_BASE}/sessions`, headers);
      const code = /"code":"(\w+)"/.exec(text)?.[1] ?? null;
      const todo = 'Answer only to the names the server goes by, against DNS rebinding.';
      agree('the answer', { status, code }, { status: 421, code: 'misdirected_host' }, todo);
    },
  },
];
