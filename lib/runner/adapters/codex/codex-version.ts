import { textOf } from '@interlude/protocol/fields';

/** @param userAgent of the answer to `initialize`: `interlude/0.171.0 (Debian 12.0.0; x86_64) …` */
export function codexVersion(userAgent: unknown): string | null {
  const [, version] = /^[^/]*\/(\d[\w.+-]{0,63})/.exec(textOf(userAgent) ?? '') ?? [];
  return version === undefined ? null : `codex ${version}`;
}
