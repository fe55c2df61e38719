import {
  Bot,
  CircleHelp,
  FileDiff,
  FileText,
  FolderSearch,
  Globe,
  ListTodo,
  type LucideIcon,
  Search,
  SquareTerminal,
  Timer,
  Wrench,
} from 'lucide-react';

const ICONS: [RegExp, LucideIcon][] = [
  [/^(?:bash|shell|terminal|exec|powershell|monitor)/i, SquareTerminal],
  [/^(?:edit|multiedit|write|notebookedit|apply_patch|str_replace)/i, FileDiff],
  [/^(?:read|view|cat|open)/i, FileText],
  [/^(?:grep|search|rg)/i, Search],
  [/^(?:glob|ls|list|find)/i, FolderSearch],
  [/^web/i, Globe],
  [/^(?:task(?:create|update|get|list)|todo)/i, ListTodo],
  [/^(?:agent|task)/i, Bot],
  [/^(?:askuser|question)/i, CircleHelp],
  [/^(?:cron|schedule|sleep|wait)/i, Timer],
];

export function ToolIcon({ name }: { name: string }) {
  const Icon = ICONS.find(([pattern]) => pattern.test(name))?.[1] ?? Wrench;
  return <Icon size={13} strokeWidth={1.75} aria-hidden="true" className="shrink-0 text-ink-3" />;
}
