import { EVERYTHING, type Scope } from '@interlude/protocol/scope';
import { type Authenticator, authenticate } from '@/lib/server/access/authenticate';
import { CredentialCache } from '@/lib/server/access/credential-cache';
import { addCredential } from '@/lib/server/access/credential-rows';
import { LoginThrottle } from '@/lib/server/access/login-throttle';
import { temporaryDatabase } from '../support/database';
import { TOKEN } from './bench-context';
import { note, report } from './report';

/**
 * Cost of authenticating a request with each kind of credential while 10,000 others are in use. None may query the
 * database.
 */
const OTHERS = 10_000;
const REQUESTS = 40_000;
const LIMIT_MICROSECONDS = 50;

const database = await temporaryDatabase();
let queries = 0;
const { execute } = database.reader;
database.reader.execute = (statement) => {
  queries += 1;
  return execute(statement);
};
const now = Date.now;
const book = new CredentialCache({ database, now });
const settings = { token: TOKEN, localName: null, allowedHosts: [], allowAddresses: false, now };
const door: Authenticator = { settings: () => settings, credentials: async () => book, throttle: new LoginThrottle() };

try {
  const agents: Scope = { kind: 'agents', ids: ['agent-1'], prefixes: [] };
  const secrets = await database.writes.run(async (transaction) => {
    const common = { now: now(), expiresAt: null };
    const runner = { ...common, kind: 'token', name: 'a runner', role: 'runner', scope: agents } as const;
    const person = { ...common, kind: 'session', name: 'a person', role: 'admin', scope: EVERYTHING } as const;
    const made = [await addCredential(transaction, runner)];
    made.push(await addCredential(transaction, { ...person, idleMs: 3_600_000 }));
    for (let count = 0; count < OTHERS; count += 1) made.push(await addCredential(transaction, runner));
    return made.map(({ secret }) => secret);
  });
  const [runner = '', person = '', ...others] = secrets;
  for (const other of others) await authenticate(request({ authorization: `Bearer ${other}` }), door);
  const kinds = {
    "the owner's token": request({ authorization: `Bearer ${TOKEN}` }),
    "a runner's token": request({ authorization: `Bearer ${runner}` }),
    "a browser's cookie": request({ cookie: `theme=dark; interlude=${person}`, 'sec-fetch-site': 'same-origin' }),
  };
  for (const [kind, sent] of Object.entries(kinds)) {
    for (let count = 0; count < 2_000; count += 1) await authenticate(sent, door);
    const before = queries;
    const since = performance.now();
    const times: number[] = [];
    for (let count = 0; count < REQUESTS; count += 1) {
      const beganAt = performance.now();
      await authenticate(sent, door);
      times.push((performance.now() - beganAt) * 1_000);
      // lets the check for changed credentials run
      if (count % 2_000 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    times.sort((a, b) => a - b);
    note(`authentication: ${kind}, p50`, times[REQUESTS >> 1] ?? 0, 'µs');
    report(`authentication: ${kind}, p99`, times[Math.floor(REQUESTS * 0.99)] ?? 0, 'µs', {
      atMost: LIMIT_MICROSECONDS,
    });
    // credentials are checked for changes twice a second, regardless of the request rate
    const looks = Math.ceil((performance.now() - since) / 500) + 1;
    report(`authentication: ${kind}, queries for ${REQUESTS} requests`, queries - before, '', { atMost: looks });
  }
} finally {
  book.close();
  await database.dispose();
}

function request(headers: Record<string, string>): Request {
  return new Request('http://127.0.0.1:4319/api/v1/events', { headers: { host: '127.0.0.1:4319', ...headers } });
}
