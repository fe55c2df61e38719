import { MAX_TITLE } from '@interlude/protocol/limits';
import { redactModel } from '@interlude/protocol/redaction/redact-model';
import { redactValue } from '@interlude/protocol/redaction/redact-value';
import { describe, expect, it } from 'vitest';

const SECRET = 'Rk4vqTr7wLx2';
const redacted = (value: unknown) => {
  const tally = { redacted: 0 };
  const shown = JSON.stringify(redactValue(value, tally, true));
  return { isHidden: !shown.includes(SECRET), count: tally.redacted, shown };
};

describe('redactValue', () => {
  it.each([
    ['an option and its argument', ['deploy', '--password', SECRET]],
    ['an option joined with its argument', ['mysql', '-u', 'root', `-p${SECRET}`]],
    ['a user with a password', ['curl', '-u', `mara:${SECRET}`, 'https://example.com']],
    ['an assignment', ['env', `DB_PASS=${SECRET}`, 'npm', 'start']],
    ['a header in a list of them', ['Host', 'example.com', 'Authorization', `Basic ${SECRET}=`]],
    ['a header and its value', ['X-Api-Key', SECRET]],
    ['an argument with blanks before it', ['sh', '-c', 'npm ci && npm test', '--token', SECRET]],
  ])('hides %s in a list of arguments', (_what, args) => {
    expect(redacted({ command: args })).toMatchObject({ isHidden: true, count: 1 });
    expect(JSON.parse(redacted({ command: args }).shown).command).toHaveLength(args.length);
  });

  it.each([
    ['a pair', { name: 'DB_PASSWORD', value: SECRET }],
    ['a pair with an id before its name', { id: 'row-1', name: 'DB_PASSWORD', value: SECRET }],
    ['a pair whose value comes first', { Value: SECRET, Name: 'ApiKey' }],
    ['a parameter', { ParameterKey: 'DbPassword', ParameterValue: SECRET }],
    [
      'a nested pair',
      {
        env: [
          { name: 'PORT', value: '80' },
          { name: 'API_TOKEN', value: SECRET },
        ],
      },
    ],
    ['a pair whose value is an object', { key: 'db.password', value: { stringValue: SECRET } }],
    ['an object with the name', { password: { value: SECRET } }],
    ['an object with the name, under a key of its own', { password: { current: SECRET } }],
    ['a column of a table', { user: { 0: 'mara' }, password: { 0: SECRET } }],
    ['a list with the name', { passwords: [SECRET] }],
    ['an object of objects', { passwords: { mara: { main: SECRET } } }],
    ['a command that goes on behind a line break', { command: `mysql \\\n  -p${SECRET} \\\n  shop` }],
    ['a field of a page', { element: 'Password input', ref: 'e3', text: SECRET }],
    ['a field found by its type', { type: 'password', value: SECRET }],
    ['a header', { name: 'Authorization', value: `Basic ${SECRET}=` }],
    [
      'a row below its names',
      [
        ['user', 'password'],
        ['mara', SECRET],
      ],
    ],
    ['a Kubernetes Secret', { kind: 'Secret', data: { conf: SECRET } }],
    ['a Kubernetes Secret in clear', { kind: 'Secret', stringData: { conf: SECRET } }],
    ['a name of several words', { secretKeyBase: SECRET }],
    ['a short name', { pass: SECRET }],
  ])('hides the value of %s', (_what, value) => {
    expect(redacted({ input: value })).toMatchObject({ isHidden: true, count: 1 });
  });

  it.each([
    [['git', 'commit', '-m', 'Add a password']],
    [['docker', 'run', '-p', '8080:80', 'nginx']],
    [{ name: 'LOG_LEVEL', value: 'debug' }],
    [{ name: 'password', type: 'string' }],
    [{ kind: 'ConfigMap', data: { level: 'debug' } }],
    [{ kind: 'Secret', data: { token: '$TOKEN' } }],
    [{ token: { type: 'bearer', issuer: 'mara42', expires_in: 3600 } }],
    [{ password: { type: 'string', description: 'At least 8 characters, 1 digit.', minLength: 8 } }],
    [{ tokens: 1234, pass: true, secret: null }],
    [{ element: 'Password strength meter', text: 'weak' }],
    [{ name: 'Authorization', in: 'header', value: 'required' }],
    [
      [
        ['name', 'type'],
        ['password', 'varchar(255)'],
      ],
    ],
    [{ columns: ['id', 'password'], rows: [[1, null]] }],
    [{ title: 'A plan to rotate the secret', openTurnId: null, lastText: 'The token: expected and more' }],
    [{ text: 'The token: expected and more', owedSince: 1 }],
  ])('returns %j as it is', (value) => {
    expect(redactValue(value, { redacted: 0 }, true)).toBe(value);
    expect(redactValue(value, { redacted: 0 }, false)).toBe(value);
  });

  it('hides a long argument that starts with a secret', () => {
    const long = `${SECRET}~`.repeat(40);
    expect(redacted({ command: ['deploy', '--password', long] })).toMatchObject({ isHidden: true, count: 1 });
  });

  it('hides a possible secret at the end of a growing text or truncated title', async () => {
    const begun = 'psql postgres://app:Rk4vqTr7';
    const title = `${'x'.repeat(MAX_TITLE - begun.length)}${begun}`;
    for (const row of [
      { title: null, lastText: begun, openTurnId: 'turn-1' },
      { title: begun, lastText: null, openTurnId: 'turn-1' },
      { text: begun, owedSince: 1 },
      { title, lastText: null, openTurnId: null },
    ]) {
      expect(JSON.stringify(redactValue(row, { redacted: 0 }, false))).not.toContain('Rk4v');
      expect(JSON.stringify(await redactModel({ ...row, list: [] }, () => null))).not.toContain('Rk4v');
    }
  });
});
