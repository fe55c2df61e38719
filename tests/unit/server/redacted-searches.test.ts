import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { AccessStage, type Headers } from '@/tests/support/access-stage';
import { record } from '@/tests/support/ingest-target';

const RIGHT = 'hunter2Blue';
const WRONG = 'hunter2Grey';
const SECRET = `DB_PASSWORD=${RIGHT}`;
const SHOWN = 'DB_PASSWORD=[redacted: password]';
const SESSIONS = ['s1', 's2', 's3'];

let stage: AccessStage;
let viewer: Headers;

beforeAll(async () => {
  stage = await AccessStage.start({ env: { INTERLUDE_REDACT_ROLES: 'viewer' } });
  viewer = await stage.token({ role: 'viewer' });
  const bodies: Record<string, unknown>[] = [
    { kind: 'log', log: { level: 'info', component: 'c', message: SECRET } },
    { kind: 'log', log: { level: 'info', component: SECRET, message: 'zebra in the middle' } },
    { kind: 'log', log: { level: 'info', component: 'c', message: SECRET } },
    { kind: 'log', log: { level: 'info', component: 'c', message: 'zebra' } },
    { kind: 'log', log: { level: 'info', component: 'c', message: SECRET } },
    { kind: 'status', status: { kind: SECRET } },
    ...SESSIONS.flatMap((sessionId) =>
      [
        { type: 'RUN_STARTED', threadId: sessionId, runId: `r-${sessionId}` },
        { type: 'TEXT_MESSAGE_CHUNK', messageId: `m-${sessionId}`, role: 'user', delta: `use ${SECRET} please` },
        {
          type: 'CUSTOM',
          name: 'request:opened',
          value: { request_id: `q-${sessionId}`, kind: 'permission', title: `run with ${SECRET} now`, input: {} },
        },
      ].map((event) => ({ sessionId, event })),
    ),
  ];
  const records = bodies.map((body, index) => record(index + 1, body));
  await stage.ask('/events', { method: 'POST', body: { producer: { id: 'p1', epoch: 1 }, records } });
  // On a busy machine a search would end early, at another line each time.
  vi.spyOn(performance, 'now').mockReturnValue(0);
});
afterAll(async () => {
  vi.restoreAllMocks();
  await stage.close();
});

type Answer = readonly [status: number, body: string];

const answer = async (path: string): Promise<Answer> => {
  const response = await stage.send(`/api/v1${path}`, { as: viewer });
  return [response.status, await response.text()];
};

/** Answers at one position: the server's own sweeps may write in between, and then it asks again. */
async function answersAtOnce(paths: readonly string[]) {
  for (;;) {
    const [, before] = await answer('/inbox');
    const answers = [];
    for (const path of paths) answers.push(await answer(path));
    if ((await answer('/inbox'))[1] === before) return answers as [Answer, Answer, ...Answer[]];
  }
}

const guessed = (guess: string) => encodeURIComponent(guess);
const LOGS = '/agents/a1/logs';
const SEARCHES: Record<string, (guess: string) => string> = {
  'a page of a log by regex': (guess) => `${LOGS}?limit=1&regex=${guessed(`^zebra$|PASSWORD=${guess}`)}`,
  'a page of a log by what is shown and what is not': (guess) => `${LOGS}?regex=${guessed(`\\[redacted|${guess}`)}`,
  'a page of a log by words': (guess) => `${LOGS}?limit=1&q=${guessed(guess)}`,
  'the lines around one': (guess) => `${LOGS}?limit=2&line=2&regex=${guessed(`^zebra$|PASSWORD=${guess}`)}`,
  'the lines before one': (guess) => `${LOGS}?limit=1&before=9&regex=${guessed(`^zebra$|PASSWORD=${guess}`)}`,
  'the lines after one': (guess) => `${LOGS}?limit=1&after=0&regex=${guessed(`^zebra$|PASSWORD=${guess}`)}`,
  'a log by its components': (guess) => `${LOGS}?component=${guessed(`DB_PASSWORD=${guess}`)}`,
  'a downloaded log': (guess) => `${LOGS}/download?regex=${guessed(`^zebra$|PASSWORD=${guess}`)}`,
  'the sessions': (guess) => `/sessions?limit=1&q=${guessed(guess)}`,
  'the agents': (guess) => `/agents?q=${guessed(guess)}`,
  'the inbox': (guess) => `/inbox?limit=1&q=${guessed(guess)}`,
};

describe('a search by a redacted reader', () => {
  test.each(Object.entries(SEARCHES))('answers a right guess like a wrong one: %s', async (_, search) => {
    const [right, wrong, ...prefixes] = await answersAtOnce([RIGHT, WRONG, 'hunter2B', 'hunter2C'].map(search));
    expect(right[0]).toBe(200);
    expect(right).toEqual(wrong);
    // prefixes of a right guess, so that no one can search letter by letter
    expect(prefixes[0]).toEqual(prefixes[1]);
  });

  test('finds the text that the reader sees, on every page', async () => {
    const lines = async (filter: string) =>
      (await stage.ask<{ lines: { message: string }[] }>(`${LOGS}?${filter}`, { as: viewer })).lines.length;
    expect(await lines(`regex=${guessed('PASSWORD=\\[redacted')}`)).toBe(3);
    expect(await lines(`q=${guessed(SHOWN)}`)).toBe(3);
    expect(await lines('q=zebra')).toBe(2);
    expect(await lines(`component=${guessed(SHOWN)}`)).toBe(1);
    for (const [path, name, count] of [
      ['/agents', 'agents', 1],
      ['/sessions', 'sessions', SESSIONS.length],
      ['/inbox', 'items', SESSIONS.length],
    ] as const) {
      const found: unknown[] = [];
      for (let after: string | null = '0'; after !== null; ) {
        const query = `limit=1&after=${guessed(after)}&q=redacted`;
        const page: Record<string, unknown> = await stage.ask(`${path}?${query}`, { as: viewer });
        found.push(...(page[name] as unknown[]));
        after = page.next as string | null;
      }
      expect(found).toHaveLength(count);
    }
  });
});
