import { secretName } from './secret-names';
import { BEGUN, isPlaceholder, type SecretSpan, spanOf } from './secret-span';
import { isSecretValue, isWord, QUOTED, run } from './secret-values';

/** A fallback for a missing value: `os.getenv("TOKEN") or "…"`, `process.env.TOKEN ?? '…'`. */
const FALLBACK = /([\w.-]{2,96})["'`]?\s{0,2}[\])}]{0,2}\s{0,3}(?:\|\||\?\?|\bor\b|\belse\b|\?:)\s{0,3}\(?(["'`])/g;
const FALLBACK_SIGN = /(?:\|\||\?\?|\bor|\belse|\?:)\s{0,3}\(?["'`]/;
/** `${DB_PASS:-hunter2}`: a shell's default. */
const SHELL_DEFAULT = /\$\{([A-Za-z_]\w{0,95}):?[-=+]([^}\s"'`$]{1,512})/g;

/** Values that stand in for a missing secret. */
export function fallbackSecrets(text: string, spans: SecretSpan[], isOpen: boolean): void {
  for (const pattern of [FALLBACK, SHELL_DEFAULT]) {
    if (pattern === SHELL_DEFAULT ? !text.includes('${') : !FALLBACK_SIGN.test(text)) continue;
    for (const { 0: whole, 1: name = '', 2: second = '', index } of text.matchAll(pattern)) {
      const named = secretName(name);
      if (named === null || named.strength === 'weak') continue;
      const isShell = pattern === SHELL_DEFAULT;
      const start = index + whole.length - (isShell ? second.length : 0);
      const value = isShell ? second : run(text, start, QUOTED[second] as RegExp);
      if (value === null || value === '') continue;
      const place = { isQuoted: true, isProse: false, next: '' };
      if (isSecretValue(value, named, name, place) && !(isWord(value) && !isShell))
        spans.push(spanOf(start, value, named.kind));
      else if (isOpen && start + value.length === text.length && !isPlaceholder(value))
        spans.push({ start, end: text.length, kind: BEGUN });
    }
  }
}
