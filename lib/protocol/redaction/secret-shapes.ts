import { pendingSpan, type SecretSpan } from './secret-values';

/**
 * Token formats of well-known services. They follow secretlint's recommended rules (licence below) where it has one,
 * else the service's documentation and the rules of gitleaks and TruffleHog.
 *
 * secretlint is not a dependency: version 13.1.0 requires Node.js 22, is asynchronous (a log line must be written when
 * the call returns), skips examples, and obeys `secretlint-disable` in the text, which any agent may print.
 *
 * Unlike secretlint's exact lengths and word boundaries, lengths here are lower bounds, so that a truncated or extended
 * secret is redacted too.
 *
 * Failure: every pattern takes linear time. It starts with a literal, followed by runs of character classes, each
 * separated by a character outside the class before it.
 *
 * @see https://github.com/secretlint/secretlint/tree/v13.0.7/packages/%40secretlint/secretlint-rule-preset-recommend
 *
 * secretlint: Copyright (c) 2020 azu
 *
 * Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
 * documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
 * rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
 * persons to whom the Software is furnished to do so, subject to the following conditions:
 *
 * The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
 * Software.
 *
 * THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
 * WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
 * COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
 * OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
 */
interface SecretShape {
  /** Shown in the redaction mark. */
  kind: string;
  /** Literals, at least one of which every match contains. */
  hints: readonly string[];
  /** True if every match starts with a hint. The pattern is then tried only at hints. */
  isPrefix: boolean;
  /** True if ordinary words start the same way. A partial match is then pending only with a digit. */
  isWordLike?: true;
  /** Sticky if `isPrefix`, else global. The whole match is the secret. */
  pattern: RegExp;
}

const shape = (kind: string, hints: string | readonly string[], { source }: RegExp, lead = ''): SecretShape => {
  const all = typeof hints === 'string' ? [hints] : hints;
  const isPrefix = Array.isArray(hints) || source.startsWith(all[0]?.replaceAll(/[.$/]/g, String.raw`\$&`) ?? '');
  return { kind, hints: all, isPrefix, pattern: new RegExp(lead + source, isPrefix ? 'y' : 'g') };
};

/** A word boundary that also matches after an escaped line break (`\n`). */
const APART = String.raw`(?<![A-Za-z0-9](?<!\\[nrt]))`;
const apart = (kind: string, hints: string | readonly string[], pattern: RegExp): SecretShape =>
  shape(kind, hints, pattern, APART);

/** A shape whose start also occurs in words. */
const wordLike = (kind: string, hints: string | readonly string[], pattern: RegExp): SecretShape => ({
  ...apart(kind, hints, pattern),
  isWordLike: true,
});

const PEM64_BEGIN = 'LS0tLS1CRUdJTi';
/** First lines of public and encrypted PEM blocks. */
const OPEN_PEMS = [
  ...['CERTIFICATE', 'NEW CERTIFICATE', 'TRUSTED CERTIFICATE', 'X509', 'PUBLIC KEY', 'SSH2 PUBLIC KEY'],
  ...['PGP PUBLIC KEY', 'PGP MESSAGE', 'PGP SIGNATURE'],
].map((label) => `-----BEGIN ${label}`);
/** Matches the start of a base64-encoded PEM private key. */
export const PRIVATE_PEM64 = `${PEM64_BEGIN}(?!${OPEN_PEMS.map((line) =>
  // Without the last base64 character if it depends on the next byte.
  btoa(line).slice(PEM64_BEGIN.length, Math.floor((line.length * 8) / 6)),
).join('|')})`;

/** Specific shapes first: of two matches at the same place, the first gives the kind. */
export const SECRET_SHAPES: readonly SecretShape[] = [
  apart('interlude-token', 'il', /il[tsec]_[A-Za-z0-9_-]{32,}/),
  shape('anthropic-key', 'sk-ant-', /sk-ant-[A-Za-z0-9_-]{16,}/),
  apart('openai-key', 'sk-', /sk-(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{16,}/),
  shape('openrouter-key', 'sk-or-', /sk-or-[A-Za-z0-9_-]{16,}/),
  // Any other service with this prefix. Without a digit, it is an identifier.
  apart('api-key', 'sk-', /sk-(?=[A-Za-z_-]{0,40}\d)[A-Za-z0-9_-]{20,}/),
  shape('groq-key', 'gsk_', /gsk_[A-Za-z0-9]{20,}/),
  apart('xai-key', 'xai-', /xai-[A-Za-z0-9]{32,}/),
  apart('huggingface-token', 'hf_', /hf_[A-Za-z0-9]{30,}/),
  apart('replicate-token', 'r8_', /r8_[A-Za-z0-9]{30,}/),
  shape('perplexity-key', 'pplx-', /pplx-[A-Za-z0-9]{32,}/),
  shape('langsmith-key', 'lsv2_', /lsv2_[a-z]{2}_[A-Za-z0-9_]{20,}/),
  shape('github-token', 'gh', /gh[opusr]_[A-Za-z0-9_.-]{30,}/),
  shape('github-token', 'github_pat_', /github_pat_[A-Za-z0-9_]{20,}/),
  apart('gitlab-token', 'gl', /gl(?:pat|dt|rt|rtr|cbt|ptt|oas|soat|ft|agent|imt|ffct)-[A-Za-z0-9_.-]{20,}/),
  apart('bitbucket-token', 'ATBB', /ATBB[A-Za-z0-9]{24,}/),
  apart('atlassian-token', 'AT', /AT(?:ATT3|CTT3)[A-Za-z0-9_=-]{40,}/),
  shape('npm-token', 'npm_', /npm_[A-Za-z0-9]{30,}/),
  shape('pypi-token', 'pypi-Ag', /pypi-Ag[A-Za-z0-9_-]{40,}/),
  shape('rubygems-key', 'rubygems_', /rubygems_[a-f0-9]{40,}/),
  shape('docker-token', 'dckr_', /dckr_[op]at_[A-Za-z0-9_-]{20,}/),
  apart(
    'aws-access-key',
    ['A3T', 'AKIA', 'AGPA', 'AIDA', 'AROA', 'AIPA', 'ANPA', 'ANVA', 'ASIA', 'ABIA', 'ACCA'],
    /(?:A3T[A-Z0-9]|AKIA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])/,
  ),
  shape('google-api-key', 'AIza', /AIza[A-Za-z0-9_-]{30,}/),
  shape('google-oauth-token', 'ya29.', /ya29\.[A-Za-z0-9_-]{20,}/),
  shape('google-oauth-secret', 'GOCSPX-', /GOCSPX-[A-Za-z0-9_-]{20,}/),
  apart('google-refresh-token', '1//0', /1\/\/0[A-Za-z0-9_-]{30,}/),
  apart('azure-secret', 'Q~', /[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{30,}/),
  shape('slack-token', 'xox', /xox[abeoprsd](?:\.xox[bp])?-[A-Za-z0-9-]{10,}/),
  shape('slack-token', 'xapp-', /xapp-[A-Za-z0-9-]{10,}/),
  shape('slack-webhook', 'hooks.slack.com/', /hooks\.slack\.com\/(?:services|workflows|triggers)\/[A-Za-z0-9/_-]{20,}/),
  shape('discord-webhook', '/webhooks/', /\/webhooks\/[0-9]{15,}\/[A-Za-z0-9_-]{40,}/),
  shape('telegram-token', ':AA', /(?<![0-9])[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}/),
  apart('stripe-key', ['sk_', 'rk_'], /[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,}/),
  shape('stripe-webhook-secret', 'whsec_', /whsec_[A-Za-z0-9+/=]{20,}/),
  shape('square-token', 'sq0', /sq0[a-z]{3}-[A-Za-z0-9_-]{20,}/),
  shape('shopify-token', 'shp', /shp(?:at|ca|pa|ss|tka)_[A-Za-z0-9]{20,}/),
  apart('sendgrid-key', 'SG.', /SG\.[A-Za-z0-9_-]{10,128}\.[A-Za-z0-9_-]{10,}/),
  apart('twilio-key', 'SK', /SK[a-f0-9]{32}(?![A-Za-z0-9])/),
  apart('mailgun-key', ['key-'], /(?<!-)key-[a-f0-9]{32}(?![A-Za-z0-9])/),
  shape('digitalocean-token', ['doo_v1_', 'dop_v1_', 'dor_v1_'], /do[opr]_v1_[a-f0-9]{40,}/),
  shape('heroku-key', 'HRKU-', /HRKU-[A-Za-z0-9_-]{30,}/),
  apart('vercel-token', 'vc', /vc[pirak]_[A-Za-z0-9]{20,}/),
  apart('netlify-token', 'nfp_', /nfp_[A-Za-z0-9]{30,}/),
  apart('cloudflare-token', 'cf', /cf(?:k|ut|at)_[A-Za-z0-9]{40,}/),
  apart('supabase-key', 'sb', /sb(?:p|_secret)_[A-Za-z0-9_-]{20,}/),
  shape('planetscale-token', 'pscale_', /pscale_[a-z]{2,6}_[A-Za-z0-9_.=-]{30,}/),
  apart('databricks-token', 'dapi', /dapi[a-f0-9]{32}(?:-[0-9])?/),
  apart('vault-token', 'hv', /hv[sbr]\.[A-Za-z0-9_-]{20,}/),
  apart('doppler-token', 'dp.', /dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{30,}/),
  shape('1password-token', 'ops_ey', /ops_ey[A-Za-z0-9+/=_-]{40,}/),
  shape('tailscale-key', 'tskey-', /tskey-[a-z]{2,20}-[A-Za-z0-9_-]{16,}/),
  apart('grafana-token', 'gl', /gl(?:c_[A-Za-z0-9+/=]{32,}|sa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8})/),
  shape('sentry-token', 'sntry', /sntry[su]_[A-Za-z0-9+/=_-]{30,}/),
  shape('new-relic-key', 'NRAK-', /NRAK-[A-Z0-9]{20,}/),
  shape('postman-key', 'PMAK-', /PMAK-[A-Za-z0-9-]{30,}/),
  shape('linear-key', 'lin_', /lin_(?:api|oauth)_[A-Za-z0-9_]{20,}/),
  shape('notion-token', 'ntn_', /ntn_[A-Za-z0-9]{30,}/),
  shape('figma-token', 'figd_', /figd_[A-Za-z0-9_-]{20,}/),
  shape('age-key', 'AGE-SECRET-KEY-', /AGE-SECRET-KEY-1[A-Z0-9]{30,}/),
  wordLike('airtable-token', 'pat', /pat[A-Za-z0-9]{14}\.[a-f0-9]{40,}/),
  wordLike('alibaba-key', 'LTAI', /LTAI[A-Za-z0-9]{12,30}/),
  wordLike('artifactory-key', 'AKCp', /AKCp[A-Za-z0-9]{40,}/),
  apart('artifactory-token', 'cmVmdGtu', /cmVmdGtu[A-Za-z0-9]{40,}/),
  apart('clojars-token', 'CLOJARS_', /CLOJARS_[A-Za-z0-9]{40,}/),
  apart('circleci-token', 'CCIPAT_', /CCIPAT_[A-Za-z0-9]{8,40}_[A-Za-z0-9]{30,}/),
  apart('contentful-token', 'CFPAT-', /CFPAT-[A-Za-z0-9_-]{30,}/),
  wordLike('crates-token', 'cio', /cio[A-Za-z0-9]{32}(?![A-Za-z0-9])/),
  wordLike(
    'discord-token',
    ['MT', 'Mj', 'Mz', 'ND', 'NT', 'Nj', 'Nz', 'OD', 'OT'],
    /(?:M[Tjz]|N[DTjz]|O[DT])[A-Za-z0-9_-]{22,26}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,40}/,
  ),
  wordLike('dropbox-token', 'sl.', /sl\.[A-Za-z0-9_-]{60,}/),
  apart('duffel-token', 'duffel_', /duffel_(?:test|live)_[A-Za-z0-9_=-]{30,}/),
  apart('dynatrace-token', 'dt0', /dt0[a-z][0-9]{2}\.[A-Z0-9]{20,}\.[A-Z0-9]{40,}/),
  wordLike('easypost-key', 'EZ', /EZ[AT]K[A-Za-z0-9]{40,}/),
  apart('facebook-token', 'EAA', /EAA[A-Z][A-Za-z0-9]{60,}/),
  wordLike('flutterwave-key', 'FLW', /FLW(?:SECK|PUBK)(?:_TEST)?-[A-Za-z0-9]{12,}(?:-X)?/),
  apart('fly-token', 'fm', /fm[12]_[A-Za-z0-9+/=_]{60,}/),
  apart('fly-token', 'fo1_', /fo1_[A-Za-z0-9_-]{30,}/),
  apart('frameio-token', 'fio-u-', /fio-u-[A-Za-z0-9_=-]{40,}/),
  apart('gitlab-token', 'GR1348941', /GR1348941[A-Za-z0-9_-]{16,}/),
  apart('harness-token', ['pat.', 'sat.'], /[ps]at\.[A-Za-z0-9_-]{20,24}\.[a-f0-9]{24}\.[A-Za-z0-9]{16,}/),
  apart('hubspot-token', 'pat-', /pat-[a-z]{2}[0-9]-[a-f0-9-]{30,}/),
  apart('infracost-key', 'ico-', /ico-[A-Za-z0-9]{30,}/),
  apart('langfuse-key', 'sk-lf-', /sk-lf-[a-f0-9-]{30,}/),
  wordLike('lob-key', ['live_', 'test_'], /(?:live|test)_(?:pub_)?[a-f0-9]{30,}/),
  apart('mailchimp-key', '-us', /[a-f0-9]{32}-us[0-9]{1,2}(?![A-Za-z0-9])/),
  apart('mapbox-token', 'sk.eyJ', /sk\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{16,}/),
  apart('maxmind-key', '_mmk', /[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk/),
  wordLike('nuget-key', 'oy2', /oy2[a-z0-9]{43}(?![A-Za-z0-9])/),
  shape('teams-webhook', '.webhook.office.com/', /\.webhook\.office\.com\/webhookb2\/[A-Za-z0-9@/_-]{40,}/),
  apart('openshift-token', 'sha256~', /sha256~[A-Za-z0-9_-]{40,}/),
  apart('paypal-token', 'access_token$', /access_token\$(?:production|sandbox)\$[a-z0-9]{10,}\$[a-f0-9]{20,}/),
  apart('pinecone-key', 'pcsk_', /pcsk_[A-Za-z0-9_]{40,}/),
  apart('posthog-key', 'phx_', /phx_[A-Za-z0-9]{30,}/),
  apart('prefect-key', 'pn', /pn[ub]_[A-Za-z0-9]{30,}/),
  apart('pulumi-token', 'pul-', /pul-[a-f0-9]{40}/),
  apart('readme-key', 'rdme_', /rdme_[a-z0-9]{60,}/),
  wordLike('resend-key', 're_', /re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}/),
  wordLike('fireworks-key', 'fw_', /fw_[A-Za-z0-9]{20,}/),
  apart('scalingo-token', 'tk-us-', /tk-us-[A-Za-z0-9_-]{40,}/),
  apart('sendinblue-key', 'xkeysib-', /xkeysib-[a-f0-9]{60,}-[A-Za-z0-9]{12,}/),
  apart('shippo-token', 'shippo_', /shippo_(?:live|test)_[a-f0-9]{30,}/),
  apart('sonar-token', 'sq', /sq[pua]_[a-f0-9]{40}/),
  apart('sourcegraph-token', 'sgp_', /sgp_[A-Za-z0-9_]{40,}/),
  apart('square-token', 'EAAA', /EAAA[A-Za-z0-9_-]{60,}/),
  apart('terraform-token', '.atlasv1.', /[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{50,}/),
  apart('typeform-token', 'tfp_', /tfp_[A-Za-z0-9_.=-]{40,}/),
  apart('trello-token', 'ATTA', /ATTA[a-f0-9]{60,}/),
  wordLike('buildkite-token', 'bk', /bk(?:ua|ct|aj)_[a-f0-9]{32,}/),
  wordLike('gocardless-token', 'live_', /live_[A-Za-z0-9_=-]{40,}/),
  wordLike('yandex-token', 't1.', /t1\.[A-Z0-9a-z_-]{8,}={0,2}\.[A-Za-z0-9_-]{60,}={0,2}/),
  apart('adobe-secret', 'p8e-', /p8e-[A-Za-z0-9]{32}/),
  apart(
    'password-hash',
    'SCRAM-SHA-',
    /SCRAM-SHA-(?:1|256|512)\$[0-9]{3,8}:[A-Za-z0-9+/=]{8,}\$[A-Za-z0-9+/=]{20,}:[A-Za-z0-9+/=]{20,}/,
  ),
  // crypt(3), bcrypt, Argon2, htpasswd, LDAP, Django: open to offline guessing.
  shape(
    'password-hash',
    '$1$ $5$ $6$ $7$ $y$ $gy$ $md5 $sha1 $apr1 $2a $2b $2x $2y $P$ $H$ $scrypt $argon2 $pbkdf2'.split(' '),
    /\$(?:1|5|6|7|y|gy|md5|sha1|apr1|2[abxy]|P|H|scrypt|argon2(?:id|i|d)|pbkdf2(?:-sha(?:256|512))?)\$[A-Za-z0-9./$=,+_-]{20,}/,
  ),
  shape('password-hash', ['{S', '{CRYPT}'], /\{(?:S?SHA(?:256|384|512)?|SMD5|CRYPT)\}[A-Za-z0-9+/=$.]{20,}/),
  apart('password-hash', 'pbkdf2_sha', /pbkdf2_sha(?:1|256|512)\$[0-9]{3,8}\$[A-Za-z0-9]{4,64}\$[A-Za-z0-9+/=]{20,}/),
  shape('private-key', PEM64_BEGIN, new RegExp(`${PRIVATE_PEM64}[A-Za-z0-9+/=_-]{20,}`)),
  // A base64url header and payload, then a signature or the other parts of a JWE.
  shape(
    'jwt',
    ['eyJ'],
    /(?<![A-Za-z0-9_-](?<!\\[nrt]))eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){1,3}/,
  ),
];

/** Shapes by the first two characters of their hints, as one number. */
const BY_START = new Map<number, { rank: number; hint: string }[]>();
const ANYWHERE: number[] = [];
/** Indexed by two ASCII characters: 1 if a hint starts with them. */
const IS_START = new Uint8Array(1 << 14);
for (const [rank, { hints, isPrefix }] of SECRET_SHAPES.entries()) {
  if (!isPrefix) ANYWHERE.push(rank);
  else
    for (const hint of hints) {
      const start = (hint.charCodeAt(0) << 7) | hint.charCodeAt(1);
      IS_START[start] = 1;
      BY_START.set(start, [...(BY_START.get(start) ?? []), { rank, hint }]);
    }
}

/** Finds secrets of known shapes. */
export function shapedSecrets(text: string, spans: SecretSpan[]): void {
  const found: { rank: number; start: number; end: number }[] = [];
  for (const rank of ANYWHERE) {
    const { hints, pattern } = SECRET_SHAPES[rank] as SecretShape;
    if (!hints.some((hint) => text.includes(hint))) continue;
    for (const { 0: secret, index } of text.matchAll(pattern))
      found.push({ rank, start: index, end: index + secret.length });
  }
  /** End of the last match by shape: matches of one shape don't overlap. */
  const ends = new Map<number, number>();
  let next = text.charCodeAt(0);
  for (let at = 0; at + 1 < text.length; at += 1) {
    const code = next;
    next = text.charCodeAt(at + 1);
    if (code > 127 || next > 127 || IS_START[(code << 7) | next] === 0) continue;
    for (const { rank, hint } of BY_START.get((code << 7) | next) ?? []) {
      if (at < (ends.get(rank) ?? 0) || !text.startsWith(hint, at)) continue;
      const { pattern } = SECRET_SHAPES[rank] as SecretShape;
      pattern.lastIndex = at;
      if (!pattern.test(text)) continue;
      found.push({ rank, start: at, end: pattern.lastIndex });
      ends.set(rank, pattern.lastIndex);
    }
  }
  found.sort((a, b) => a.rank - b.rank);
  for (const { rank, start, end } of found) spans.push({ start, end, kind: (SECRET_SHAPES[rank] as SecretShape).kind });
}

/** Longest pending secret in UTF-16 code units. Shapes contain no blanks. */
const MAX_PENDING_LENGTH = 8_192;
const ENDS_WORD = /[\s"'`<>]/;

const ATOM = /^(?:\\.|\[(?:\\.|[^\]\\])*\]|[^\\[(])/s;
const TIMES = /^(?:\{(\d+)(,)?(\d*)\}|[*+?])/;

/** Each shape as a pattern that matches its literal start and any part of the rest at the end of the text. */
const PENDING_SHAPES = SECRET_SHAPES.map(({ hints, isPrefix, isWordLike = false, pattern }) => ({
  hints,
  isPrefix,
  isWordLike,
  pattern: new RegExp(`(?:${partialPatterns(pattern.source).join('|')})$`),
}));

/** Finds an incomplete secret of a known shape at the end of a text. */
export function pendingShapes(text: string, spans: SecretSpan[]): void {
  const least = Math.max(0, text.length - MAX_PENDING_LENGTH);
  let from = text.length;
  while (from > least && !ENDS_WORD.test(text.charAt(from - 1))) from -= 1;
  if (text.length - from < 3) return;
  const word = text.slice(from);
  for (const { hints, isPrefix, isWordLike, pattern } of PENDING_SHAPES) {
    if (!hints.some((hint) => word.includes(hint))) continue;
    const found = pattern.exec(word);
    if (found === null || (isWordLike && !/\d/.test(found[0]))) continue;
    // Text before a hint in the middle matches too much.
    if (isPrefix || hints.some((hint) => found[0].includes(hint)))
      spans.push(pendingSpan(text.length - word.length + found.index, text));
  }
}

/** Patterns that stop within each repeated part of a pattern: `ab[c]{3,}d` gives `ab[c]{0,}`. */
function partialPatterns(source: string): string[] {
  for (const parts of alternatives(source)) if (parts !== source) return alternatives(source).flatMap(partialPatterns);
  const atoms = atomsOf(source);
  const found: string[] = [];
  let before = '';
  for (const { atom, least, most } of atoms) {
    if (/^\(\?<?[=!]/.test(atom)) {
      // A required lookahead is left out, because later text may still match it.
      if (!atom.startsWith('(?=')) before += atom;
      continue;
    }
    const inner = /^\((?:\?:)?(.*)\)$/s.exec(atom)?.[1];
    if (inner !== undefined && least === null) for (const part of partialPatterns(inner)) found.push(before + part);
    if (least !== null) found.push(`${before}(?:${atom}){0,${most ?? ''}}`);
    before += least === null ? atom : `${atom}{${least},${most ?? ''}}`;
  }
  return found;
}

interface Atom {
  atom: string;
  /** Lower bound of the repetition; null without one. */
  least: string | null;
  most: string | null;
}

function atomsOf(source: string): Atom[] {
  const atoms: Atom[] = [];
  for (let index = 0; index < source.length; ) {
    const rest = source.slice(index);
    const atom = rest.startsWith('(') ? rest.slice(0, groupEnd(rest)) : (ATOM.exec(rest)?.[0] ?? rest);
    const times = TIMES.exec(rest.slice(atom.length));
    index += atom.length + (times?.[0].length ?? 0);
    if (times === null) atoms.push({ atom, least: null, most: null });
    else if (times[1] !== undefined)
      atoms.push({ atom, least: times[1], most: times[2] === undefined ? times[1] : times[3] || null });
    else atoms.push({ atom, least: times[0] === '+' ? '1' : '0', most: times[0] === '?' ? '1' : null });
  }
  return atoms;
}

function groupEnd(text: string): number {
  let depth = 0;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (character === '\\') index += 1;
    else if (character === '[') index += (/^\[(?:\\.|[^\]\\])*\]/s.exec(text.slice(index))?.[0].length ?? 1) - 1;
    else if (character === '(') depth += 1;
    else if (character === ')' && --depth === 0) return index + 1;
  }
  return text.length;
}

/** Splits at each top-level `|`. */
function alternatives(source: string): string[] {
  const parts = [''];
  for (const { atom, least, most } of atomsOf(source)) {
    if (atom === '|') parts.push('');
    else parts[parts.length - 1] += least === null ? atom : `${atom}{${least},${most ?? ''}}`;
  }
  return parts.length === 1 ? [source] : parts;
}

/**
 * Makes a pattern match a partial value at the end of the text: its last group needs one character only.
 *
 * @param pattern ends with a group with a counted repetition, such as `([a-z]{8,512})`, and at most one lookahead
 * @throws TypeError for any other pattern
 */
export function openEnded(pattern: RegExp): RegExp {
  const source = pattern.source.replace(LAST_LOOKAHEAD, '');
  if (!LAST_COUNT.test(source)) throw new TypeError(`${pattern} does not end with a counted run in a group`);
  const open = source.replace(LAST_COUNT, (_, least: string, more?: string) => `{1,${more ?? least}})`);
  return new RegExp(`${open}$`, pattern.flags.replace('g', ''));
}

const LAST_LOOKAHEAD = /\(\?[=!](?:[^()[\]\\]|\\.|\[(?:\\.|[^\]])*\]|\([^()]*\))*\)$/;
const LAST_COUNT = /\{(\d+)(?:,(\d*))?\}\)$/;
