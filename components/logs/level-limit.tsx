'use client';

import type { DesiredLogLevel } from '@interlude/protocol/commands';
import { DEBUG_TTL_SECONDS } from '@interlude/protocol/limits';
import { formatDuration } from '@interlude/protocol/time';

const CHOICES: readonly { seconds: number | null; words: string }[] = [
  { seconds: DEBUG_TTL_SECONDS, words: '15 min' },
  { seconds: 3_600, words: '1 h' },
  { seconds: 8 * 3_600, words: '8 h' },
  { seconds: null, words: 'until changed' },
];

/** For how long the level is asked; another choice asks for it anew, from now on. */
export function LevelLimit(props: {
  desired: Pick<DesiredLogLevel, 'requestedAt' | 'expiresAt'>;
  onPick: (ttlSeconds: number | null) => void;
}) {
  const { requestedAt, expiresAt } = props.desired;
  const seconds = expiresAt === null ? null : Math.round((expiresAt - requestedAt) / 1_000);
  const isOther = !CHOICES.some((choice) => choice.seconds === seconds);
  return (
    <label className="flex items-center gap-1.5 text-ink-3 text-xs">
      <span className="sr-only">Time limit</span>
      <select
        value={String(seconds)}
        onChange={(event) => props.onPick(event.target.value === 'null' ? null : Number(event.target.value))}
        className="h-6 rounded border border-line-strong bg-ground px-1 text-ink-2 hover:text-ink"
      >
        {isOther && <option value={String(seconds)}>{formatDuration((seconds ?? 0) * 1_000)}</option>}
        {CHOICES.map((choice) => (
          <option key={choice.words} value={String(choice.seconds)}>
            {choice.words}
          </option>
        ))}
      </select>
    </label>
  );
}
