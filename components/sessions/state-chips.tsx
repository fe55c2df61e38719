'use client';

import { SESSION_STATES, type SessionState } from '@interlude/protocol/vocabulary';
import { Glyph } from '@/components/ui/glyph';
import { glyphOf, STATE_WORD } from './session-words';

/** Which states are shown, any of them or all, with how many there are in each. Those without any are left out. */
export function StateChips(props: {
  legend: string;
  states: readonly SessionState[];
  counts: Record<SessionState, number>;
  onStates: (states: SessionState[]) => void;
}) {
  const { legend, states, counts, onStates } = props;
  const toggle = (state: SessionState) => {
    const isOn = states.includes(state);
    onStates(SESSION_STATES.filter((one) => (one === state ? !isOn : states.includes(one))));
  };
  return (
    <fieldset className="contents">
      <legend className="sr-only">{legend}</legend>
      {SESSION_STATES.filter((state) => counts[state] > 0 || states.includes(state)).map((state) => (
        <label
          key={state}
          className="hit flex h-6 items-center gap-1 rounded-full border border-line px-2 text-ink-2 hover:text-ink has-checked:border-ink has-focus-visible:outline-2 has-checked:bg-raised"
        >
          <input type="checkbox" checked={states.includes(state)} onChange={() => toggle(state)} className="sr-only" />
          <Glyph name={glyphOf(state)} />
          {STATE_WORD[state]}
          <span className="tabular text-ink-3">{counts[state].toLocaleString('en')}</span>
        </label>
      ))}
    </fieldset>
  );
}
