import { AppError, withErrors } from '@interlude/protocol/errors';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { afterEach, beforeEach, describe, expect, type MockInstance, test, vi } from 'vitest';
import { makeSecret } from '@/lib/server/access/secret';
import { AccessStage } from '../../support/access-stage';

let said: MockInstance<typeof console.error>;
beforeEach(() => {
  said = vi.spyOn(console, 'error').mockImplementation(() => undefined);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});
const lines = () => said.mock.calls.map(([line]) => JSON.parse(String(line)));

describe('text format', () => {
  test('prints the message, then the whole error', () => {
    const error = new TypeError('no', { cause: new AppError('unavailable', 'The database is away.') });
    serverLog('error', 'commands are held up:', { error, requestId: 'r1' });
    serverLog('info', 'ready again', { detail: 1 });
    expect(said.mock.calls).toEqual([
      [
        expect.stringMatching(
          /^\[interlude\] commands are held up: \(request r1\) TypeError: no\n +at .*server-log\.test[\s\S]*\n +cause: [^\n]*The database is away\.[\s\S]*code: unavailable/,
        ),
      ],
      ['[interlude] ready again'],
    ]);
  });

  test.each([
    [undefined, ['info', 'warn', 'error']],
    ['debug', ['debug', 'info', 'warn', 'error']],
    ['WARN', ['warn', 'error']],
    ['error', ['error']],
    ['nonsense', ['info', 'warn', 'error']],
  ])('prints from INTERLUDE_LOG_LEVEL=%s up', (level, expected) => {
    vi.stubEnv('INTERLUDE_LOG_LEVEL', level);
    for (const each of ['debug', 'info', 'warn', 'error'] as const) serverLog(each, each);
    expect(said.mock.calls.map(([line]) => String(line).replace('[interlude] ', ''))).toEqual(expected);
  });
});

describe.each(['text', 'json'])('%s format', (format) => {
  test.each(['INTERLUDE_TOKEN', 'INTERLUDE_DATABASE_AUTH_TOKEN', 'CRON_SECRET', 'INTERLUDE_WEBHOOK_SECRET'])(
    'no credential stands in it, neither one that we made nor %s, wherever it is quoted',
    (name) => {
      const [ours, set, inAddress] = [makeSecret('token'), 'a-secret-of-the-environment', 'in-the-address.x'];
      vi.stubEnv('INTERLUDE_LOG_FORMAT', format);
      vi.stubEnv(name, set);
      const cause = new Error(`libsql://host?tls=0&authToken=${inAddress}`);
      serverLog('error', `it says ${set}:`, { error: new Error(`of ${ours}, ${set}`, { cause }), field: [set] });
      const line = String(said.mock.calls[0]?.[0]);
      expect(said.mock.calls[0]).toHaveLength(1);
      for (const secret of [ours, set, inAddress]) expect(line).not.toContain(secret);
      expect(line).toContain(`it says (${name})`);
      expect(line).toContain('libsql://host');
    },
  );
});

describe('JSON format', () => {
  beforeEach(() => vi.stubEnv('INTERLUDE_LOG_FORMAT', 'json'));

  test('prints one object with the error and its causes', () => {
    const cause = new AppError('unavailable', 'The database\nis away.');
    serverLog('warn', 'live updates are held up:', { error: new TypeError('no', { cause }), rows: 3 });
    expect(said.mock.calls[0]?.[0]).not.toContain('\n');
    expect(lines()).toEqual([
      {
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
        level: 'warn',
        message: 'live updates are held up',
        rows: 3,
        error: {
          name: 'TypeError',
          message: 'no',
          stack: expect.stringContaining('server-log.test'),
          cause: {
            name: 'AppError',
            message: 'The database\nis away.',
            code: 'unavailable',
            stack: expect.any(String),
          },
        },
      },
    ]);
  });

  test('removes our credentials from every text', () => {
    const secret = makeSecret('token');
    serverLog('error', `it says ${secret}`, { error: new Error(`of ${secret}`), field: [secret] });
    expect(said.mock.calls[0]?.[0]).not.toContain(secret);
    expect(lines()[0]).toMatchObject({ message: 'it says ilt_…', field: ['ilt_…'] });
  });

  test('logs an unexpected error once, under the request id of its response', async () => {
    const fail = withErrors(async (_request: Request): Promise<Response> => {
      throw new Error('a fault of ours');
    });
    const answerTo = async (headers: Record<string, string>) =>
      (await fail(new Request('http://127.0.0.1/', { headers }))).json();
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
    const answers = [
      await answerTo({ 'x-request-id': 'from-the-proxy' }),
      await answerTo({ traceparent: `00-${trace}-00f067aa0ba902b7-01` }),
      await answerTo({ 'x-request-id': 'two words\u00e9' }),
    ];
    const ids = answers.map(({ error }) => error.requestId);
    expect(ids).toEqual(['from-the-proxy', trace, expect.stringMatching(/^[0-9a-f-]{36}$/)]);
    expect(lines().map(({ requestId }) => requestId)).toEqual(ids);
    expect(JSON.stringify(answers)).not.toContain('a fault of ours');
  });

  test('logs each request at debug by its route, without ids or credentials', async () => {
    vi.stubEnv('INTERLUDE_LOG_LEVEL', 'debug');
    const stage = await AccessStage.start();
    await stage.send('/api/v1/sessions/a-session-of-somebody?x=1');
    await stage.send(`/sign-in?token=${makeSecret('code')}`, { as: {} });
    await stage.close();
    const requests = lines().filter(({ route }) => route !== undefined);
    expect(requests).toMatchObject([
      { level: 'debug', method: 'GET', route: '/api/v1/sessions/:sessionId', status: 404, tookMs: expect.any(Number) },
      { route: '/sign-in', status: 303, requestId: expect.any(String) },
    ]);
    expect(JSON.stringify(said.mock.calls)).not.toMatch(/a-session-of-somebody|ilc_/);
  });
});
