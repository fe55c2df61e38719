'use client';

import type { RequestItem, ToolCallItem } from '@interlude/protocol/read-models';
import { memo } from 'react';
import { Name } from '@/components/ui/name';
import { TerminalText } from '@/components/ui/terminal-text';
import { useDisclosure } from '@/components/ui/unfold';
import { CallStatus } from './call-status';
import { CutLine } from './cut-line';
import { EditCount } from './edit-count';
import { ToolChanges } from './tool-changes';
import { ToolIcon } from './tool-icon';
import { ToolInput } from './tool-input';
import { tellingArgument, toolName } from './tool-words';

/** A tool call on one line, which unfolds to what it was given and what it gave. */
export const ToolCallLine = memo(function ToolCallLine(props: {
  call: ToolCallItem;
  /** What was asked about it. */
  request: RequestItem | undefined;
  inCard?: boolean;
}) {
  const { call, request, inCard = false } = props;
  const { open, id, button } = useDisclosure();
  // The card's title is the call's description already.
  const argument = tellingArgument(call, inCard ? 'description' : undefined);
  return (
    <div>
      <button
        type="button"
        {...button}
        className="-mx-1.5 flex w-[calc(100%+12px)] min-w-0 items-center gap-2 rounded px-1.5 py-[3px] text-left text-xs hover:bg-raised/70"
      >
        <ToolIcon name={call.name} />
        <span className="max-w-[60%] shrink-0 truncate text-ink-2">
          <Name text={toolName(call.name)} most={80} layout="tool" />
        </span>
        <Argument text={argument} />
        <EditCount call={call} />
        <CallStatus call={call} request={request} />
      </button>
      {open && (
        <div id={id} className="mt-1 mb-3 ml-[6px] space-y-2 border-l pl-[15px]">
          <ToolInput call={call} />
          <CutLine cut={call.cut} />
          {call.edits !== undefined && <ToolChanges call={call} />}
          {call.result !== null && call.result !== '' && <TerminalText text={call.result} label="output" />}
          {call.result === '' && <p className="text-ink-3 text-xs">No output.</p>}
          {call.result === null && call.status !== 'running' && <p className="text-ink-3 text-xs">No result came.</p>}
        </div>
      )}
    </div>
  );
});

/** A path keeps its end when it has to be cut: the file's name tells most. */
function Argument({ text }: { text: string }) {
  const [, folder, file] = /^((?:[\w.@~-]*\/)+)([^/\s]+)$/.exec(text) ?? [];
  if (folder === undefined || file === undefined) {
    return (
      <span className="min-w-0 flex-1 truncate font-mono text-ink-3">
        <Name text={text} />
      </span>
    );
  }
  return (
    <span className="flex min-w-0 flex-1 font-mono text-ink-3">
      <span className="min-w-0 truncate">
        <Name text={folder} />
      </span>
      <span className="max-w-[70%] shrink-0 truncate text-ink-2">
        <Name text={file} layout="tool" />
      </span>
    </span>
  );
}
