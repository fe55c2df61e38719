'use client';

import type { InboxItem } from '@interlude/protocol/inbox';
import { type RefObject, useCallback, useMemo } from 'react';
import { inputParts } from '@/components/requests/input-parts';
import { ownTitle } from '@/components/requests/request-answer';
import { useSeenInFull } from '@/components/requests/request-input';
import { Name, Words } from '@/components/ui/name';
import { toPlainText } from '@/components/ui/plain-text';
import { inQuotes, nameText } from '@/components/ui/verbatim';
import { itemTitle } from './inbox-labels';
import { hasRequest, type RequestedItem } from './item-request';

/**
 * A request on one line (three on phones), with its command in monospace, as the agent will run it.
 *
 * @param onSeen called with true once the whole input has been in sight, false while the line cuts it, and null otherwise
 */
export function RequestLine(props: {
  item: RequestedItem;
  line: RefObject<HTMLSpanElement | null>;
  onSeen: (isSeen: boolean | null) => void;
}) {
  const { item, line, onSeen } = props;
  const { preview } = item.request;
  const parts = useMemo(() => wholeInput(item), [item]);
  const onCheck = useCallback(
    (isAllSeen: boolean) => {
      const { scrollHeight = 1, clientHeight = 0, scrollWidth = 1, clientWidth = 0 } = line.current ?? {};
      const isCut = scrollHeight > clientHeight + 1 || scrollWidth > clientWidth + 1;
      onSeen(isCut || parts === null ? false : isAllSeen || null);
    },
    [line, parts, onSeen],
  );
  useSeenInFull(line, onCheck);
  if (preview === undefined || (parts === null && preview.line === null)) {
    return (
      <span ref={line} dir="auto" className="wrap-break-word line-clamp-2 min-w-0 flex-1 font-medium">
        <Words text={itemTitle(item)} />
      </span>
    );
  }
  const [command, ...fields] = parts ?? [];
  const isPermission = item.kind === 'permission';
  const input = preview.input ?? { line: preview.line };
  const own = isPermission && item.title !== null ? ownTitle(item.title, preview.tool, input) : null;
  return (
    <span className="flex min-w-0 flex-1 items-baseline gap-3">
      <span ref={line} className="line-clamp-3 min-w-0 [overflow-wrap:anywhere] sm:line-clamp-1">
        {isPermission && preview.tool !== null && (
          <span className="font-medium">
            <Name text={preview.tool} layout="tool" />
          </span>
        )}{' '}
        <bdi className={isPermission ? 'font-mono text-xs' : 'font-medium'}>
          {command === undefined ? <Words strict text={preview.line ?? ''} /> : <Verbatim text={command.text} />}
        </bdi>
        {fields.map(({ name, text }) => (
          <span key={name} className="text-2xs text-ink-3">
            {' \u2002'}
            {/* The agent's description is quoted and needs no name. */}
            {name !== 'description' && <Verbatim text={name} />}{' '}
            <span className="text-ink-2">
              {name === 'description' && '“'}
              <Verbatim text={text} />
              {name === 'description' && '”'}
            </span>
          </span>
        ))}
      </span>
      {own !== null && (
        <span dir="auto" className="min-w-0 flex-1 shrink-[999] truncate text-ink-2 max-sm:sr-only">
          <Words text={inQuotes(toPlainText(own))} />
        </span>
      )}
    </span>
  );
}

function Verbatim({ text }: { text: string }) {
  return <Name text={text} max={Number.POSITIVE_INFINITY} signs={Number.POSITIVE_INFINITY} />;
}

/**
 * Name for an item's controls: the request as its row shows it, else the title, and the agent. A title alone may be cut
 * or shared by several rows.
 */
export function itemName(item: InboxItem): string {
  const names = [itemTitle(item), item.agentId];
  const { tool, line, input = { line } } = item.request?.preview ?? { tool: null, line: null };
  const parts = hasRequest(item) ? wholeInput(item) : null;
  const text = parts === null ? line : parts.map(({ text }) => text).join(' ');
  if (text !== null) {
    const isOwn = item.title !== null && ownTitle(item.title, tool, input) !== null;
    const shown = inQuotes(item.kind === 'permission' && tool !== null ? `${tool}: ${text}` : text);
    names.splice(isOwn ? 1 : 0, isOwn ? 0 : 1, shown);
  }
  return nameText(names.join(', '));
}

/** The parts of an input that fits on a line; null if it is longer, or is not known. */
export function wholeInput({ kind, request: { preview } }: RequestedItem) {
  if (kind !== 'permission' || preview?.input === undefined) return null;
  const parts = inputParts({ args: preview.input, argsText: '' });
  return parts.length === 0 || parts.some(({ text }) => /[\n\r]/.test(text)) ? null : parts;
}
