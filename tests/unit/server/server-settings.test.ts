import { readFileSync } from 'node:fs';
import { contextRatioOf, logLevelOf } from '@interlude/runner/cli/command';
import { workspaceNote } from '@interlude/runner/host/first-message';
import { afterEach, beforeEach, describe, expect, type MockInstance, test, vi } from 'vitest';
import { serverSettings } from '@/lib/server/server-settings';

type Env = Record<string, string>;

const VALID = { INTERLUDE_TOKEN: 'a-token-for-tests-0123456789' };
const WEBHOOK = { INTERLUDE_WEBHOOK_URL: 'https://hooks.example/1' };
const COLLECTOR = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };

/** An invalid value of each setting, and other settings it needs to be read. */
const REFUSED: Record<string, [value: string, others?: Env]> = {
  INTERLUDE_PUBLIC_URL: ['interlude.example.com'],
  INTERLUDE_ALLOWED_HOSTS: ['console.example:8443'],
  INTERLUDE_LOCAL_NAME: ['a.b'],
  INTERLUDE_CONTEXT: ['foo'],
  INTERLUDE_CRON_SECRET: ['short'],
  CRON_SECRET: ['short'],
  INTERLUDE_TOKEN: ['short'],
  INTERLUDE_OIDC_ISSUER: ['foo'],
  INTERLUDE_TRUSTED_PROXY: ['foo'],
  INTERLUDE_EMBED_ORIGINS: ['foo'],
  INTERLUDE_REDACT_ROLES: ['admin'],
  INTERLUDE_METRICS_TOKEN: ['short'],
};
const WARNED: typeof REFUSED = {
  INTERLUDE_STREAM_MAX_SECONDS: ['abc'],
  INTERLUDE_SESSION_HOURS: ['0'],
  INTERLUDE_SESSION_IDLE_HOURS: ['721'],
  INTERLUDE_WEBHOOK_URL: ['foo'],
  INTERLUDE_WEBHOOK_SECRET: ['short', WEBHOOK],
  INTERLUDE_WEBHOOK_KINDS: ['foo', WEBHOOK],
  INTERLUDE_REPLY_OVERDUE_MINUTES: ['-1'],
  INTERLUDE_UNDELIVERED_SECONDS: ['soon'],
  INTERLUDE_RETENTION_DAYS: ['never'],
  INTERLUDE_RETENTION_DAYS_BY_STATE: ['gone=3'],
  INTERLUDE_RETENTION_MIB: ['1G'],
  INTERLUDE_AUDIT_RETENTION_DAYS: ['0'],
  INTERLUDE_LOG_RETENTION_DAYS: ['forever'],
  INTERLUDE_LOG_RETENTION_MIB: ['1G'],
  INTERLUDE_LOG_LEVEL: ['loud'],
  INTERLUDE_LOG_FORMAT: ['xml'],
  OTEL_EXPORTER_OTLP_ENDPOINT: ['foo'],
  INTERLUDE_TRACE_AGENTS: ['maybe', COLLECTOR],
  OTEL_TRACES_EXPORTER: ['console', COLLECTOR],
  OTEL_TRACES_SAMPLER: ['some', COLLECTOR],
  OTEL_BSP_SCHEDULE_DELAY: ['soon', COLLECTOR],
};
/** Checked by the launcher or a runner. */
const ELSEWHERE = [
  ...['HOST', 'PORT', 'INTERLUDE_BASE_PATH', 'INTERLUDE_DATA_DIR'],
  ...['INTERLUDE_DATABASE_URL', 'INTERLUDE_DATABASE_AUTH_TOKEN'],
  ...['INTERLUDE_TOKEN_FILE', 'INTERLUDE_URL', 'INTERLUDE_CLAUDE_SDK_DIR'],
];
const OF_RUNNERS = ['INTERLUDE_CONTEXT_RATIO', 'INTERLUDE_WORKSPACE'];

let logged: MockInstance<typeof console.error>;
beforeEach(() => {
  logged = vi.spyOn(console, 'error').mockImplementation(() => undefined);
});
afterEach(() => void vi.restoreAllMocks());

test('every setting of docs/settings.md is in a table', () => {
  const page = readFileSync(new URL('../../../docs/settings.md', import.meta.url), 'utf8');
  const names = page
    .match(/^\|[^|]+\|/gm)
    ?.flatMap((cell) => [...cell.matchAll(/`([A-Z][A-Z_]+)`/g)].map(([, name]) => name));
  const tables = [...Object.keys({ ...REFUSED, ...WARNED }), ...ELSEWHERE, ...OF_RUNNERS];
  expect(names?.length).toBeGreaterThan(30);
  expect(names?.filter((name = '') => !tables.includes(name))).toEqual([]);
});

describe.each(Object.entries(REFUSED))('%s=%s', (name, [value, others]) => {
  test('is refused on one line that names it', () => {
    const env = { ...VALID, ...others, [name]: value };
    expect(() => serverSettings(env, 'shared')).toThrow(new RegExp(`^[^\n]*${name}[^\n]+\\.$`));
    expect(logged).not.toHaveBeenCalled();
  });
});

describe.each(Object.entries(WARNED))('%s=%s', (name, [value, others]) => {
  test('is named in the log once', () => {
    serverSettings({ ...VALID, ...others, [name]: value }, 'shared');
    expect(logged.mock.calls).toEqual([[expect.stringContaining(name)]]);
  });
});

test('valid settings log nothing', () => {
  const env = {
    ...{ ...VALID, ...WEBHOOK, ...COLLECTOR, INTERLUDE_TRACE_AGENTS: 'On', INTERLUDE_LOG_LEVEL: 'fatal' },
    ...{ INTERLUDE_STREAM_MAX_SECONDS: '2', INTERLUDE_ALLOWED_HOSTS: 'a.example, ::1, [fe80::1], 10.0.0.7,' },
  };
  const settings = serverSettings(env, 'shared');
  expect(settings).toMatchObject({ streamMaxMs: 2_000, otel: { tracesAgents: true } });
  expect(serverSettings(VALID, 'shared').streamMaxMs).toBeNull();
  const perRequest = { ...VALID, INTERLUDE_DATABASE_URL: 'libsql://db.example' };
  expect(serverSettings(perRequest, 'perRequest').streamMaxMs).toBe(280_000);
  expect(logged).not.toHaveBeenCalled();
});

test('a runner names its invalid settings and starts', () => {
  const notice = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  expect([undefined, 'on', 'Off', 'no'].map((value) => contextRatioOf({ INTERLUDE_CONTEXT_RATIO: value }))).toEqual([
    ...[true, true, false, true],
  ]);
  logLevelOf({ INTERLUDE_LOG_LEVEL: 'loud' });
  expect(notice.mock.calls.map(([line]) => String(line))).toEqual([
    'interlude: INTERLUDE_CONTEXT_RATIO is "no", not on or off; using on\n',
    expect.stringContaining('INTERLUDE_LOG_LEVEL is "loud"'),
  ]);
  expect(workspaceNote('[]').problem).toContain('INTERLUDE_WORKSPACE');
});
