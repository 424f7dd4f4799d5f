/** System 000: `checkpoint_list` and `checkpoint_restore`, with its exact arguments and results (000-12 … 000-17). */

import type { Captures } from './capture.ts'
import type { Config } from './config.ts'
import { confirm } from './confirm.ts'
import type { Engine, Outcome, Point } from './engine.ts'
import { forkLive } from './fork.ts'
import { eventsOf, type Agent, type Context, type Session, type ToolDefinition } from './host.ts'
import { closedTurns, openTurn, turnEnd } from './log.ts'
import { plural } from './render.ts'
import { FLAG, list, object, TEXT, tool, WHOLE } from './tool.ts'

export interface TurnPoint {
  readonly turn: number
  readonly changedCount: number
  readonly capturedAt: number
}

export interface TurnList {
  readonly isGitRepo: boolean
  readonly points: readonly TurnPoint[]
}

export interface TurnRestored {
  readonly restored: readonly string[]
  readonly childSessionId?: string
  readonly contextOnly: boolean
  readonly undoPoint?: number
}

export interface TurnParts {
  readonly ctx: Context
  readonly config: Config
  readonly engine: Engine
  readonly captures: Captures
}

/** Who asks: a model inside a turn, or a person between turns. */
export interface Caller {
  readonly agent: Agent
  readonly signal?: AbortSignal
  readonly callId?: string
  readonly person: boolean
}

export class Turns {
  readonly #parts: TurnParts
  readonly #counts = new Map<string, number>()

  constructor(parts: TurnParts) {
    this.#parts = parts
  }

  /** Closed turns with what they changed. Without an engine: the turns of the log, of which only the conversation can go back. */
  async list(session: Session): Promise<TurnList & { readonly without?: string }> {
    const { engine, captures } = this.#parts
    const closed = closedTurns(eventsOf(session))
    try {
      const { isGitRepo } = await captures.open(session)
      const { turns } = await captures.inOrder(session, () => engine.list(session.id))
      const records = new Map(turns.map(record => [record.turn, record]))
      const inherited = await this.#inherited(session)
      const listed: TurnPoint[] = []
      // One entry for each turn (000-04); outside git worktrees every turn of the log can be gone back to.
      for (const { turn, at } of new Map(closed.map(one => [one.turn, one])).values()) {
        const record = records.get(turn) ?? inherited.get(turn)
        if (record !== undefined || !isGitRepo) listed.push({ turn, changedCount: record?.changedCount ?? 0, capturedAt: record?.capturedAt ?? at })
      }
      return { isGitRepo, points: listed }
    } catch (error) {
      const unique = [...new Map(closed.map(turn => [turn.turn, turn])).values()]
      return { isGitRepo: false, points: unique.map(({ turn, at }) => ({ turn, changedCount: 0, capturedAt: at })), without: (error as Error).message }
    }
  }

  /** Turns that a child has from its parent: their points are the parent's. */
  async #inherited(session: Session): Promise<Map<number, TurnPoint>> {
    const { engine, captures } = this.#parts
    const { parentSession, seedLength } = session.header
    const found = new Map<number, TurnPoint>()
    if (parentSession === undefined || seedLength === undefined || seedLength === 0) return found
    const inherited = new Set(closedTurns(eventsOf(session).slice(0, seedLength)).map(({ turn }) => turn))
    const { points } = await captures.inOrder(session, () => engine.list(session.id, true))
    const theirs = points.filter(point => point.session === parentSession && point.turn !== undefined && inherited.has(point.turn))
    for (const to of theirs.filter(point => point.kind === 'turn-end')) {
      const from = theirs.find(point => point.turn === to.turn)
      const changedCount = from === undefined || from === to ? to.changed : await this.#changed(session, from, to)
      found.set(to.turn as number, { turn: to.turn as number, changedCount, capturedAt: to.at })
    }
    return found
  }

  /** Paths that a turn changed: from the point before it to the one after it (000-07). Points never change, so neither does this. */
  async #changed(session: Session, from: Point, to: Point): Promise<number> {
    const key = `${from.id} ${to.id}`
    let count = this.#counts.get(key)
    if (count === undefined) {
      count = (await this.#parts.engine.diff(session.id, from.id, to.id)).length
      this.#counts.set(key, count)
    }
    return count
  }

  /**
   * Goes to the end of a turn, or takes the k-th restore back for `-k` (design § 13).
   *
   * @throws naming the turns there are, for one that is not there.
   */
  async restore(caller: Caller, turn: number): Promise<TurnRestored & { readonly outcome?: Outcome; readonly without?: string }> {
    const { engine, captures } = this.#parts
    const { session } = caller.agent
    const refused = await this.#mayRestore(caller, turn)
    if (refused !== undefined) throw new Error(`REWIND_DENIED: ${refused}`)
    const insideTurn = openTurn(eventsOf(session)) !== undefined
    if (turn < 0) {
      await captures.open(session)
      const outcome = await captures.inOrder(session, () => engine.undoNth(session.id, -turn, insideTurn))
      return { ...result(outcome), outcome }
    }
    const { points, isGitRepo, without } = await this.list(session)
    if (!points.some(point => point.turn === turn))
      throw new Error(`there is no turn ${turn}; available: ${points.map(point => point.turn).join(', ') || 'none'}`)
    if (without !== undefined) return { ...(await this.#conversationOnly(session, turn)), without }
    const outcome = await captures.inOrder(session, () =>
      engine.restore(session.id, {
        target: `t${turn}`,
        scope: 'both',
        exact: true,
        guard: this.#parts.config.preRewindCheckpoint,
        gitOnly: true,
        insideTurn,
      }),
    )
    // Outside git worktrees only the conversation went back (000-16).
    return { ...result(outcome), ...(isGitRepo ? {} : { restored: [] }), outcome }
  }

  /** No engine: the log alone is cut, by the host, and the files stay. */
  async #conversationOnly(session: Session, turn: number): Promise<TurnRestored> {
    const end = turnEnd(eventsOf(session), turn)
    if (end === undefined) return { restored: [], contextOnly: true }
    const childSessionId = await forkLive(this.#parts.ctx, {
      session: session.id,
      boundary: end.end,
      notice: `[rwd] This conversation was rewound to the end of turn ${turn}. The files of the workspace were left as they are: read a file again before you edit it.`,
    })
    return { restored: [], childSessionId, contextOnly: true }
  }

  /** A person who typed the command has decided; a model is subject to `mayRestore`. */
  async #mayRestore(caller: Caller, turn: number): Promise<string | undefined> {
    const { ctx, config } = this.#parts
    if (caller.person || config.mayRestore === 'allow') return undefined
    if (config.mayRestore === 'never') return 'mayRestore is never: only a person may restore, with /checkpoint'
    const answer = await confirm(ctx, config, {
      agent: caller.agent,
      question: turn < 0 ? `Take restore ${-turn} of this session back?` : `Restore the files to the end of turn ${turn} and fork the conversation there?`,
      detail: 'What is overwritten is kept as a guard and can be brought back.',
      yes: ['Restore'],
      no: 'Cancel',
      toolName: 'checkpoint_restore',
      ...(caller.callId === undefined ? {} : { callId: caller.callId }),
      ...(caller.signal === undefined ? {} : { signal: caller.signal }),
    })
    return answer.allowed ? undefined : answer.why
  }
}

/** 000's answer: paths that were written or removed, sorted (deviation 6); `-k` takes the k-th operation back. */
function result({ restored, removed, childSessionId, contextOnly, nth }: Outcome): TurnRestored {
  return {
    restored: [...new Set([...restored, ...removed])].sort(),
    ...(childSessionId === undefined ? {} : { childSessionId }),
    contextOnly,
    ...(nth === undefined ? {} : { undoPoint: -nth }),
  }
}

function sessionOf(agent: Agent | undefined): Agent {
  if (agent === undefined) throw new Error('this tool needs the session of an agent')
  return agent
}

export function describeTurns({ isGitRepo, points, without }: TurnList & { without?: string }): string {
  const turns = points.length === 0 ? 'none' : points.map(({ turn, changedCount }) => `turn ${turn} (${plural(changedCount, 'file')})`).join(', ')
  const why = without !== undefined ? `; only the conversation can go back: ${without}` : isGitRepo ? '' : '; not a git worktree: only the conversation goes back'
  return `checkpoints: ${turns}${why}`
}

export function describeRestored({ restored, childSessionId, contextOnly, undoPoint }: TurnRestored): string {
  const parts = [contextOnly ? 'files left as they are' : `${plural(restored.length, 'file')} restored`]
  parts.push(childSessionId === undefined ? 'conversation not forked' : `conversation continues in ${childSessionId}`)
  if (undoPoint !== undefined) parts.push(`undo with checkpoint_restore {"turn": ${undoPoint}}`)
  return `${parts.join('; ')}. Read a file again before you edit it.`
}

export function turnTools(turns: Turns): ToolDefinition[] {
  return [
    tool<Record<string, never>>({
      name: 'checkpoint_list',
      description: 'List the turns of this session whose end can be restored, with the number of files each changed.',
      arguments: {},
      answer: object({ isGitRepo: FLAG, points: list(object({ turn: WHOLE, changedCount: WHOLE, capturedAt: WHOLE })) }),
      reads: true,
      render: (value: TurnList) => describeTurns(value),
      run: async (_args, exec) => {
        const { isGitRepo, points } = await turns.list(sessionOf(exec.agent).session)
        return { isGitRepo, points }
      },
    }),
    tool<{ turn: number }>({
      name: 'checkpoint_restore',
      description:
        'Put the files of the workspace back to their state at the end of a turn and fork the conversation there. The answer names an undo point; giving it as the turn takes the restore back.',
      arguments: { turn: { type: 'integer', description: 'A turn of checkpoint_list, or an undo point of an earlier answer', required: true } },
      answer: object({ restored: list(TEXT), 'childSessionId?': TEXT, contextOnly: FLAG, 'undoPoint?': WHOLE }),
      render: (value: TurnRestored) => describeRestored(value),
      run: async ({ turn }, exec) => {
        const agent = sessionOf(exec.agent)
        if (turn === 0) throw new Error('turns are counted from 1')
        const done = await turns.restore({ agent, signal: exec.signal, callId: exec.callId, person: false }, turn)
        return {
          restored: done.restored,
          ...(done.childSessionId === undefined ? {} : { childSessionId: done.childSessionId }),
          contextOnly: done.contextOnly,
          ...(done.undoPoint === undefined ? {} : { undoPoint: done.undoPoint }),
        }
      },
    }),
  ]
}
