import { MAX_LOG_MESSAGE_BYTES } from '@interlude/protocol/limits';
import { findKeys } from '@interlude/protocol/redaction/find-secrets';
import { SECRET_SHAPES } from '@interlude/protocol/redaction/secret-shapes';
import { Redactor } from '@interlude/runner/logger/redactor';
import { test } from 'vitest';
import { expectWithin } from '../../support/timing';

/** Inputs that could make a pattern backtrack: each prefix that the redactor searches for, repeated without an end. */
const hostile: [string, string][] = [
  ['lists that never end', 'password: ['],
  ['rows with parameters', 'insert into a (password) values (?) "'],
  ['commands in commands', 'docker mysql -p x '],
  ['continued lines', 'x \\\n'],
  ...[...new Set(SECRET_SHAPES.flatMap(({ hints }) => hints))].flatMap((hint): [string, string][] => [
    [`${hint} again and again`, hint],
    [`${hint} and letters`, `${hint}aA0`],
    [`${hint} and its own end`, `${hint}${'a'.repeat(30)}.`],
  ]),
  ...[
    '://',
    '://a:',
    '://a:b@',
    ':',
    '@',
    '"',
    "'",
    '\\',
    '\\"',
    '=',
    ' ',
    '\n',
    ' \n',
    '\t',
    '-',
    '_',
    '.',
    'eyJ',
    'eyJaaaaaaaaaa.',
    'eyJaaaaaaaaaa.aaaaaaaaaa.',
    'authorization',
    'authorization:',
    'Authorization: Bearer ',
    'authorization: digest ',
    'bearer ',
    'cookie:',
    'cookie: a=',
    'token',
    'token=',
    'token: ',
    'token="',
    "token='",
    'password=\\"',
    'secret_',
    'api_key',
    'key=',
    '&sig=',
    '?key=',
    ' --',
    ' --token ',
    ' --a-',
    '-----BEGIN ',
    '-----BEGIN RSA PRIVATE KEY-----',
    '-----BEGIN PRIVATE KEY-----\n-----END ',
    '-----',
    '\x1b[',
    '\x1b]',
    '\x1b;a',
    '\x9b;',
    'A3TAAKIA',
    '1234567890:AA',
    'Q~',
    '0Q~',
    'aaa0Q~',
    'a',
    'A',
    '0',
    // names, signs and labels
    'a=',
    '"a":',
    'name: password\n',
    'value=',
    'name=a value=',
    'password=$',
    '<password>',
    '<a value="',
    '|password|',
    '${A_PASS:-',
    'password: str = ',
    // commands and their arguments
    'mysql -p"',
    'curl -u ',
    '["-p",',
    'echo a | ',
    '--password "',
    // phrases
    'password is ',
    'the password for ',
    'identified by ',
    'machine a login b ',
    'set -x ',
    ':password ',
    'insert into a (password) values (',
    '.connect("a",',
    'token token ',
    // addresses
    'a:1234:b:c:',
    '?key=',
    'a:b@tcp(',
    // blocks and escapes
    'data:\n  a: b\n',
    'key: |\n  x\n',
    'Private-Lines: 2\n',
    'password = """\n',
    '\\u003d',
    '%3D',
    '&quot;',
    '漢',
    '\u2028',
    '\ud800',
  ].map((text): [string, string] => [JSON.stringify(text), text]),
];

test.each(hostile)('redacts a line of %s in linear time', (_name, unit) => {
  const message = unit.repeat(Math.ceil(MAX_LOG_MESSAGE_BYTES / unit.length));
  const redactor = new Redactor();
  let fastest = Number.POSITIVE_INFINITY;
  // The minimum, because the machine may be busy.
  for (let round = 0; round < 5 && fastest > 50; round += 1) {
    const startedAt = performance.now();
    redactor.redact('test', message);
    fastest = Math.min(fastest, performance.now() - startedAt);
  }
  expectWithin(fastest, 250);
});

test('searches 32,000 blank lines after a key’s first line in linear time', () => {
  for (const blank of [' ', '\n', '\t', '\r\n']) {
    const text = `-----BEGIN RSA PRIVATE KEY-----\n${blank.repeat(32_000)}x`;
    const startedAt = performance.now();
    findKeys(text);
    expectWithin(performance.now() - startedAt, 250);
  }
});
