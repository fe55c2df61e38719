'use client';

import { clsx } from 'clsx';
import { useLiveness } from './liveness';

/** States without an entry are `text-ink-3`. */
const COLOUR: Partial<Record<GlyphName, string>> = {
  failed: 'text-failed',
  waiting: 'text-waiting',
  working: 'text-working stale:text-ink-3',
  running: 'text-working stale:text-ink-3',
  lost: 'text-waiting',
  stalled: 'text-waiting',
  woken: 'text-accent',
};

/**
 * Icon of a state, 12 px. Each state has its own shape, not only its own colour. Hidden from screen readers, which read
 * the word beside it.
 *
 * @param isStill stops the animation, for work without a recent signal
 */
export function Glyph(props: { name: GlyphName; isStill?: boolean; className?: string }) {
  const { name: given, isStill = false, className } = props;
  const { stopped, silence } = useLiveness();
  // An animation would suggest that work continues.
  const name = stopped !== null && (given === 'working' || given === 'running') ? 'lost' : given;
  return (
    <svg
      viewBox="0 0 12 12"
      width="12"
      height="12"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      data-still={isStill || silence ? '' : undefined}
      className={clsx('shrink-0', COLOUR[name] ?? 'text-ink-3', className)}
    >
      {SHAPE[name]}
    </svg>
  );
}

const DASHED = <circle cx="6" cy="6" r="4" strokeDasharray="2 2.2" />;
const SHAPE = {
  failed: <path d="M2.5 2.5l7 7M9.5 2.5l-7 7" />,
  waiting: <path d="M4 2.5v7M8 2.5v7" strokeWidth="2" />,
  working: <circle cx="6" cy="6" r="3.5" fill="currentColor" stroke="none" className="animate-breathe" />,
  idle: <circle cx="6" cy="6" r="3.5" />,
  done: <path d="M2.5 6h7" />,
  running: (
    <g className="origin-center animate-turn">
      <circle cx="6" cy="6" r="4" opacity="0.25" />
      <path d="M6 2a4 4 0 0 1 4 4" />
    </g>
  ),
  completed: <path d="M2.5 6.5l2.5 2.5 4.5-6" />,
  stopped: <rect x="3" y="3" width="6" height="6" fill="currentColor" stroke="none" rx="1" />,
  lost: DASHED,
  stalled: <path d="M6 2l4.5 8h-9z" />,
  unknown: DASHED,
  starting: <circle cx="6" cy="6" r="1.75" />,
  woken: (
    <>
      <path d="M2 2v8M10 2v8" />
      <circle cx="6" cy="6" r="1.75" fill="currentColor" stroke="none" />
    </>
  ),
};

export type GlyphName = keyof typeof SHAPE;
