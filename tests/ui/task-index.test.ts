import { describe, expect, it } from 'vitest';
import { FleetStore } from '@/components/live/fleet-store';
import { TaskIndex } from '@/components/tasks/task-index';
import { orderTasks } from '@/components/tasks/task-panel';
import { isBoilerplate, taskOutcome } from '@/components/tasks/task-words';

import { aTask } from './rows';

describe('tasks', () => {
  const [first, second] = [
    aTask({ position: '10', runId: 'run-a', description: 'first' }),
    aTask({ position: '50', runId: 'run-b', description: 'second' }),
  ];
  const index = new TaskIndex([first, second]);

  it('tells two runs of one id apart by where they began', () => {
    expect(index.find({ id: 't1', runId: null, position: '50' })).toBe(second);
    expect(index.find({ id: 't1', runId: null, position: '10' })).toBe(first);
  });

  it('tells them apart by their run, wherever that is named', () => {
    expect(index.find({ id: 't1', runId: 'run-a', position: '90' })).toBe(first);
  });

  it('takes the newest that had begun by then when nothing else is said', () => {
    expect(index.find({ id: 't1', runId: null, position: '30' })).toBe(first);
    expect(index.find({ id: 't1', runId: null, position: '60' })).toBe(second);
    expect(index.find({ id: 't1', runId: null, position: null })).toBe(second);
  });

  it('finds nothing for an id nobody has told of', () => {
    expect(index.find({ id: 'other', runId: null, position: null })).toBeNull();
  });

  it('keeps rows that did not change', () => {
    const changed = { ...second, status: 'failed' as const };
    const fleet = new FleetStore();
    fleet.takeTasks('s', { position: '60', tasks: [first, second] });
    fleet.takeFrames([
      { event: 'task', id: '70', data: aTask({ position: '70' }) },
      { event: 'task', id: '71', data: changed },
    ]);
    const rows = fleet.tasks.list('s')?.rows ?? [];
    expect(rows.map((task) => task.position)).toEqual(['10', '50', '70']);
    expect(rows[0]).toBe(first);
    expect(rows[1]).toBe(changed);
  });

  it('lists what runs before what has ended, each newest first', () => {
    const tasks = [
      aTask({ position: '9', status: 'completed' }),
      aTask({ position: '10', status: 'failed' }),
      aTask({ position: '8' }),
      aTask({ position: '11' }),
    ];
    expect(orderTasks(tasks).map((task) => task.position)).toEqual(['11', '8', '10', '9']);
  });

  it('names an exit code only where it says more than the status', () => {
    expect(taskOutcome(aTask({ status: 'failed', exitCode: 3 }))).toBe('failed, exit 3');
    expect(taskOutcome(aTask({ status: 'completed', exitCode: 0 }))).toBe('completed');
    expect(taskOutcome(aTask({ status: 'running' }))).toBe('running');
  });

  it('knows a summary that only repeats the outcome from one that tells something', () => {
    expect(isBoilerplate({ summary: 'Background command "Poll" failed with exit code 3' })).toBe(true);
    expect(isBoilerplate({ summary: 'Three events can vanish' })).toBe(false);
    expect(isBoilerplate({ summary: null })).toBe(false);
  });
});
