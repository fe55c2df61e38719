'use client';

import type { AuditEntry } from '@interlude/protocol/access';
import { useId } from 'react';
import type { AuditField, AuditFilter } from './audit-filter';
import { RESULTS, resultWord } from './audit-filter';

/** Filters the entries. Text fields suggest values of the loaded entries. */
export function AuditFilterBar(props: {
  filter: AuditFilter;
  onFilter: (filter: AuditFilter) => void;
  actions: readonly string[];
  entries: readonly AuditEntry[];
}) {
  const { filter, onFilter, actions, entries } = props;
  const set = (field: AuditField) => (value: string) => onFilter({ ...filter, [field]: value });
  return (
    <search className="mt-5 grid max-w-4xl grid-cols-2 gap-x-3 gap-y-2 pb-2 text-xs sm:grid-cols-[repeat(auto-fit,minmax(7rem,1fr))]">
      <Text label="Who" value={filter.actor} onValue={set('actor')} known={entries.map(({ actor }) => actor)} />
      <Pick label="Action" value={filter.action} onValue={set('action')} options={actions.map((one) => [one, one])} />
      <Text label="Agent" value={filter.agent} onValue={set('agent')} known={entries.map(({ agentId }) => agentId)} />
      <Text
        label="Session"
        value={filter.session}
        onValue={set('session')}
        known={entries.map(({ sessionId }) => sessionId)}
      />
      <Pick
        label="Result"
        value={filter.result}
        onValue={set('result')}
        options={RESULTS.map((one) => [one, resultWord(one)])}
      />
      {filter.credential !== '' && (
        <Text label="Credential" value={filter.credential} onValue={set('credential')} known={[]} />
      )}
    </search>
  );
}

const CONTROL =
  'h-7 pointer-coarse:h-11 w-full rounded-md border border-line bg-ground px-2 text-ink hover:border-line-strong';

function Text(props: {
  label: string;
  value: string;
  onValue: (value: string) => void;
  known: readonly (string | null)[];
}) {
  const { label, value, onValue, known } = props;
  const id = useId();
  const names = [...new Set(known)].filter((name) => name !== null).sort();
  return (
    <label>
      <span className="block pb-0.5 text-2xs text-ink-3">{label}</span>
      <input
        dir="auto"
        type="search"
        list={names.length === 0 ? undefined : id}
        value={value}
        onChange={(event) => onValue(event.target.value)}
        placeholder="any"
        spellCheck={false}
        autoCapitalize="none"
        autoComplete="off"
        className={`${CONTROL} placeholder:text-ink-3`}
      />
      {names.length > 0 && (
        <datalist id={id}>
          {names.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      )}
    </label>
  );
}

function Pick(props: {
  label: string;
  value: string;
  onValue: (value: string) => void;
  options: readonly (readonly [value: string, word: string])[];
}) {
  const { label, value, onValue, options } = props;
  const isKnown = value === '' || options.some(([one]) => one === value);
  return (
    <label>
      <span className="block pb-0.5 text-2xs text-ink-3">{label}</span>
      <select value={value} onChange={(event) => onValue(event.target.value)} className={CONTROL}>
        <option value="">any</option>
        {!isKnown && <option value={value}>{value}</option>}
        {options.map(([one, word]) => (
          <option key={one} value={one}>
            {word}
          </option>
        ))}
      </select>
    </label>
  );
}
