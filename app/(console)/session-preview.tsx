'use client';

import { type KeyboardEvent, type ReactNode, type RefObject, useEffect, useEffectEvent, useRef, useState } from 'react';
import { AnswerStoresProvider } from '@/components/inbox/item-request';
import { useFleet } from '@/components/live/use-fleet';
import { RequestBoardProvider } from '@/components/requests/request-board';
import { sessionTitle } from '@/components/sessions/session-labels';
import type { PreviewProps } from '@/components/sessions/session-nav';
import { isTyping } from '@/components/ui/shortcuts/use-shortcuts';
import { nameText } from '@/components/ui/verbatim';
import { PreviewBody } from './preview-body';

/** Attribute of the rows of the list of sessions, from which Tab leads to the pane. */
const SESSION_ROW = 'data-session-row';
/** The pointer chooses a row after this time on it. */
const HOVER_MS = 150;
/** Changes of the choice that follow each other faster than this count as one. */
const QUICK_MS = 150;
/** The previous session stays for at most this time while the next one loads. */
const LOAD_MS = 400;

/**
 * The session chosen in the list. The previous one stays until the next one is loaded, so that nothing flashes.
 *
 * @param props.body content for a session; reports once it is loaded
 * @param props.rows attribute of the list's rows that holds the session's id
 * @param props.missing shown while the session isn't known
 */
export function SessionPreview(
  props: PreviewProps & { body?: typeof PreviewBody; rows?: string; missing?: ReactNode },
) {
  const { sessionId, list, onChoose, body: Body = PreviewBody, rows: attribute = SESSION_ROW, missing } = props;
  const pane = useRef<HTMLElement>(null);
  const next = useSettledId(sessionId);
  const [shownId, show] = useState<string>();
  const session = useFleet(({ sessions }) => sessions.get(shownId ?? next ?? ''));
  useChoice(list, attribute, pane, onChoose);
  useEffect(() => {
    const timer = setTimeout(show, LOAD_MS, next);
    return () => clearTimeout(timer);
  }, [next]);
  if (sessionId === undefined || next === undefined || session === undefined) {
    return (
      <p className="grid h-full place-items-center px-6 text-ink-3">
        {(sessionId !== undefined && missing) || 'No session selected.'}
      </p>
    );
  }
  const rows = () => [...(list.current?.querySelectorAll<HTMLElement>(`[${attribute}]`) ?? [])];
  const isRow = (row: HTMLElement) => row.getAttribute(attribute) === sessionId;
  // The reader who uses the pane keeps its session, even if another one becomes more urgent.
  const keep = () => onChoose(sessionId);
  /** Focuses the next request, else the session's row. */
  const focusNext = () => {
    const next = pane.current?.querySelector<HTMLElement>('[data-action^="request:"]:not([data-gone], [hidden] *)');
    (next ?? rows().find(isRow))?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const all = rows();
    const at = all.findIndex(isRow);
    const step = at < 0 || event.defaultPrevented || pane.current === null ? null : exitOf(event, pane.current);
    const row = step === null ? undefined : all[at + step];
    if (row === undefined) return;
    event.preventDefault();
    row.focus();
  };
  return (
    <section
      ref={pane}
      aria-label={`Preview of ${nameText(sessionTitle(session))}`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable box must be reachable by keyboard
      tabIndex={0}
      onKeyDown={onKeyDown}
      onFocus={keep}
      onPointerEnter={keep}
      className="h-full overflow-y-auto overscroll-contain -outline-offset-2"
    >
      <AnswerStoresProvider>
        <RequestBoardProvider onClosed={focusNext}>
          {[...new Set([session.id, next])].map((id) => (
            <div key={id} hidden={id !== shownId}>
              <Body sessionId={id} onReady={() => id === next && show(id)} />
            </div>
          ))}
        </RequestBoardProvider>
      </AnswerStoresProvider>
    </section>
  );
}

/** The id, except for those that are replaced within `QUICK_MS`: keys pressed quickly pass over rows. */
export function useSettledId(id: string | undefined): string | undefined {
  const [settled, settle] = useState(id);
  const changedAt = useRef(Number.NEGATIVE_INFINITY);
  useEffect(() => {
    const isQuick = performance.now() - changedAt.current < QUICK_MS;
    changedAt.current = performance.now();
    const timer = setTimeout(settle, isQuick ? QUICK_MS : 0, id);
    return () => clearTimeout(timer);
  }, [id]);
  return settled;
}

/** Chooses the row that has the focus or on which the pointer rests. Tab leads from a row to the pane. */
function useChoice(
  list: PreviewProps['list'],
  attribute: string,
  pane: RefObject<HTMLElement | null>,
  onChoose: (sessionId: string) => void,
): void {
  const choose = useEffectEvent(onChoose);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let aimed: string | undefined;
    let last = '';
    const aim = (id: string | undefined) => {
      clearTimeout(timer);
      aimed = id;
      if (id === undefined) return;
      timer = setTimeout(() => {
        // An answer that is being written stays.
        if (!pane.current?.querySelector(':is(input, textarea):focus')) choose(id);
      }, HOVER_MS);
    };
    const rowOf = (target: EventTarget | null) =>
      (target instanceof Element && target.closest(`[${attribute}]`)?.getAttribute(attribute)) || undefined;
    const listening = new AbortController();
    const on = <Name extends keyof HTMLElementEventMap>(
      name: Name,
      listener: (event: HTMLElementEventMap[Name]) => void,
    ) => list.current?.addEventListener(name, listener, listening);
    on('pointermove', ({ target, pointerType, screenX, screenY }) => {
      const place = `${screenX} ${screenY}`;
      // Rows that scroll under a resting pointer are not aimed at.
      const isMoved = place !== last && pointerType !== 'touch';
      last = place;
      const id = rowOf(target);
      if (isMoved && id !== aimed) aim(id);
    });
    on('pointerleave', () => aim(undefined));
    on('focusin', ({ target }) => {
      const id = rowOf(target);
      if (id === undefined) return;
      aim(undefined);
      choose(id);
    });
    on('keydown', (event) => {
      const { target, key, shiftKey } = event;
      if (key !== 'Tab' || shiftKey || pane.current === null || rowOf(target) === undefined) return;
      const row = (target as Element).closest<HTMLElement>(`[${attribute}]`) as HTMLElement;
      // A row of the inbox has controls of its own.
      if (attribute !== SESSION_ROW && target !== lastControlIn(row)) return;
      event.preventDefault();
      pane.current.focus();
    });
    return () => {
      listening.abort();
      clearTimeout(timer);
    };
  }, [list, attribute, pane]);
}

const CONTROLS = 'a[href], button, input, textarea, select, summary, [tabindex="0"]';

/** Where a key leads from the pane: 0 to the session's row, 1 to the row after it, null to neither. */
function exitOf({ key, shiftKey, target, nativeEvent }: KeyboardEvent, pane: HTMLElement): 0 | 1 | null {
  if (key === 'Escape') return isTyping(nativeEvent) ? null : 0;
  if (key !== 'Tab') return null;
  if (shiftKey) return target === pane ? 0 : null;
  return target === lastControlIn(pane) ? 1 : null;
}

/** The last element that Tab reaches, or the box itself. */
function lastControlIn(box: HTMLElement): HTMLElement {
  const controls = [...box.querySelectorAll<HTMLElement>(CONTROLS)].filter((one) => one.checkVisibility());
  return controls.at(-1) ?? box;
}
