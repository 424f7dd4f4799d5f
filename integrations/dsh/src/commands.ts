/** `/rewind` (002) and `/checkpoint` (000, 002): parsed, looked up, shown, confirmed, done. */

import type { Captures } from './capture.ts'
import type { Config } from './config.ts'
import { confirm } from './confirm.ts'
import type { Drift, Engine, Opened, Outcome, Point, RestoreRequest, Scope } from './engine.ts'
import { CHECKPOINT_USAGE, parseCheckpoint, parseRewind, REWIND_USAGE, type RewindCommand, type RewindScope } from './grammar.ts'
import { eventsOf, pluginMessage, type CommandDefinition, type CommandInvocation, type CommandResult, type Context, type Session } from './host.ts'
import { closedTurns, openTurn } from './log.ts'
import { plural, renderDiff, renderList, renderOutcome, renderPreview, renderUncovered, rewindPoints } from './render.ts'
import { describeRestored, describeTurns, type Turns } from './turns.ts'

export interface CommandParts {
  readonly ctx: Context
  readonly config: Config
  readonly engine: Engine
  readonly captures: Captures
  readonly turns: Turns
  readonly now?: () => number
}

type Restore = Extract<RewindCommand, { kind: 'restore' }>

/** What each word of 002 means for the engine. */
const SCOPES: Readonly<Record<RewindScope, Scope>> = { all: 'both', workspace: 'files', session: 'chat', config: 'both' }

const success = (text: string): CommandResult => ({ kind: 'success', text })
const failure = (text: string): CommandResult => ({ kind: 'error', text })

/** An error as the user reads it: its code, what happened, what to do next. */
export function explain(error: unknown): string {
  const { message, code, hints } = error as { message?: string; code?: unknown; hints?: readonly string[] }
  const named = CODES[String(code)] ?? (typeof code === 'string' ? code : undefined)
  const first = `${named === undefined ? '' : `${named}: `}${message ?? String(error)}`
  return [first, ...(hints ?? []).map(hint => `hint: ${hint}`)].join('\n')
}

/** 002's names for what the engine calls otherwise. */
const CODES: Readonly<Record<string, string>> = {
  'not-found': 'CHECKPOINT_NOT_FOUND',
  ambiguous: 'CHECKPOINT_AMBIGUOUS',
  declined: 'REWIND_DENIED',
  'confirmation-needed': 'REWIND_DENIED',
  'not-forked': 'FORK_FAILED',
  NO_ENGINE: 'PROVIDER_UNAVAILABLE',
}

export class Commands {
  readonly #parts: CommandParts
  /** One rewind at a time for each session. */
  readonly #busy = new Set<string>()

  constructor(parts: CommandParts) {
    this.#parts = parts
  }

  definitions(): CommandDefinition[] {
    const handled = (run: (invocation: CommandInvocation) => Promise<CommandResult>) => (invocation: CommandInvocation) =>
      run(invocation).catch(error => failure(explain(error)))
    return [
      {
        name: 'rewind',
        description: 'Go back to a point of this session: files, conversation, or both',
        input: { hint: '[workspace|session|all] <id|latest|step N|turn N> | preview <target> | clear' },
        handler: handled(invocation => this.rewind(invocation)),
      },
      {
        name: 'checkpoint',
        description: 'Go back to the end of a turn, or make a point now',
        input: { hint: '<turn> | list | note <text>' },
        handler: handled(invocation => this.checkpoint(invocation)),
      },
    ]
  }

  async rewind(invocation: CommandInvocation): Promise<CommandResult> {
    const command = parseRewind(invocation.rawInput)
    switch (command.kind) {
      case 'usage':
        return failure(`${command.why}\n${REWIND_USAGE}`)
      case 'list':
        return success(await this.#list(invocation.agent.session))
      case 'preview': {
        const { session } = invocation.agent
        const request = this.#request(session, 'all', command.target.text, command.files)
        await this.#open(session)
        const preview = await this.#parts.captures.inOrder(session, () => this.#parts.engine.preview(session.id, request))
        const suffix = command.files === undefined ? '' : ` --files ${command.files.join(',')}`
        return success(renderPreview(preview, command.target.text, `/rewind ${command.target.text}${suffix}`))
      }
      case 'diff':
        return success(await this.#diff(invocation.agent.session, command.from, command.to))
      case 'clear':
        return this.#clear(invocation, command.all)
      case 'restore':
        return this.#alone(invocation.agent.session, () => this.#restore(invocation, command))
    }
  }

  async checkpoint(invocation: CommandInvocation): Promise<CommandResult> {
    const { turns } = this.#parts
    const command = parseCheckpoint(invocation.rawInput)
    const { agent, signal } = invocation
    switch (command.kind) {
      case 'usage':
        return failure(`${command.why}\n${CHECKPOINT_USAGE}`)
      case 'turns':
        return success(`${CHECKPOINT_USAGE}\n${describeTurns(await turns.list(agent.session))}`)
      case 'list':
        return success(await this.#list(agent.session))
      case 'diff':
        return success(await this.#diff(agent.session, command.from, command.to))
      case 'restore':
        return this.#alone(agent.session, async () => {
          const done = await turns.restore({ agent, signal, person: true }, command.turn)
          const undo = done.undoPoint === undefined ? done : { ...done, undoPoint: undefined }
          const lines = [describeRestored(undo as typeof done)]
          if (done.without !== undefined) lines.push(`files left as they are: ${done.without}`)
          if (done.undoPoint !== undefined) lines.push(`undo with "/checkpoint ${done.undoPoint}"`)
          return success(lines.join('\n'))
        })
      case 'note':
        return success(await this.#note(agent.session, command.note))
    }
  }

  /** A point now, by hand (002-09). */
  async #note(session: Session, note: string): Promise<string> {
    const { engine, captures } = this.#parts
    const events = eventsOf(session)
    const last = events.findLast(event => event.type === 'step/start')?.data as { turn?: number; step?: number } | undefined
    if (typeof last?.turn !== 'number') throw new Error('there is nothing to come back to yet: the session has no turn')
    await captures.open(session)
    const captured = await captures.inOrder(session, () =>
      engine.capture(session.id, {
        kind: 'manual',
        turn: last.turn as number,
        ...(typeof last.step === 'number' ? { step: last.step } : {}),
        seq: session.seq,
        note,
        trigger: 'checkpoint',
      }),
    )
    if (captured.gap !== undefined) throw new Error(`no point was made: ${captured.gap}`)
    const id = captured.id?.slice(0, 8) ?? 'unknown'
    const made = captured.created ? `checkpoint #${id}: ${plural(captured.changed, 'file')} changed` : `unchanged: nothing captured; checkpoint #${id} already holds this state`
    return [made, ...renderUncovered(captured.uncovered ?? [])].join('\n')
  }

  /** With `off` a guard is kept and not listed (deviation 12). */
  #shown(points: readonly Point[]): Point[] {
    return rewindPoints(points).filter(point => point.kind !== 'guard' || this.#parts.config.preRewindCheckpoint !== 'off')
  }

  async #list(session: Session): Promise<string> {
    const { engine, captures, config } = this.#parts
    const opened = await this.#open(session)
    const { points, unprotectedSince, unprotectedReason } = await captures.inOrder(session, () => engine.list(session.id))
    const ends = new Map(closedTurns(eventsOf(session)).map(turn => [turn.end, turn.turn]))
    const own = this.#shown(points)
    const unprotected =
      unprotectedSince === undefined ? undefined : { since: unprotectedSince, ...(unprotectedReason === undefined ? {} : { reason: unprotectedReason }) }
    return renderList(own, opened, config.listLimit, (this.#parts.now ?? Date.now)(), seq => ends.get(seq), unprotected)
  }

  async #diff(session: Session, from: string, to: string): Promise<string> {
    const { engine, captures } = this.#parts
    await this.#open(session)
    return renderDiff(from, to, await captures.inOrder(session, () => engine.diff(session.id, from, to)))
  }

  /** `provider: git` refuses outside git worktrees, whatever is asked (002-13). */
  async #open(session: Session): Promise<Opened> {
    const opened = await this.#parts.captures.open(session)
    if (this.#parts.config.provider === 'git' && opened.provider !== 'git')
      throw Object.assign(new Error(`provider is git, and ${opened.root} is no git worktree with a commit`), { code: 'PROVIDER_UNAVAILABLE' })
    return opened
  }

  #request(session: Session, scope: RewindScope, target: string, paths?: readonly string[]): RestoreRequest {
    const { preRewindCheckpoint, boundary } = this.#parts.config
    return {
      target,
      scope: SCOPES[scope],
      exact: false,
      guard: preRewindCheckpoint,
      insideTurn: openTurn(eventsOf(session)) !== undefined,
      ...(boundary === 'after' ? { boundary } : {}),
      ...(paths === undefined ? {} : { paths }),
    }
  }

  /** 002-35: resolve, show, confirm, guard, files, conversation. */
  async #restore(invocation: CommandInvocation, command: Restore): Promise<CommandResult> {
    const { ctx, config, engine, captures } = this.#parts
    const { agent, signal } = invocation
    const { session } = agent
    if (command.scope === 'config') throw Object.assign(new Error('points keep no settings of this plugin: they are read from the profile when it is loaded, and are changed there'), { code: 'CONFIG_RESTORE_FAILED' })
    const opened = await this.#open(session)
    const request = this.#request(session, command.scope, command.target.text, command.files)
    const preview = await captures.inOrder(session, () => engine.preview(session.id, request))
    const answer = await confirm(ctx, config, {
      agent,
      question: `Rewind to ${command.target.text}?`,
      detail: renderPreview(preview, command.target.text, `/rewind ${command.target.text}`),
      // The least is the first: it is what a plain yes means.
      yes: preview.undecided.length === 0 ? ['Rewind'] : ['Rewind, keep what others edited', 'Rewind everything'],
      no: 'Cancel',
      toolName: 'rewind',
      signal,
    })
    if (!answer.allowed) return failure(`REWIND_DENIED: ${answer.why}; nothing was changed`)
    const decided = preview.undecided.length === 0 ? { plan: preview.plan } : await this.#decided(session, request, answer.choice === 0 ? 'keep' : 'overwrite')
    const outcome = await captures.inOrder(session, () => engine.restore(session.id, { ...request, ...decided }))
    const wantedFork = command.scope === 'all' || command.scope === 'session'
    this.#tellSource(invocation, outcome, wantedFork)
    const text = renderOutcome(outcome, opened, wantedFork)
    return outcome.status === 'partial' || outcome.notForked !== undefined ? failure(text) : success(text)
  }

  /** The plan with the decision in it: anything that changed since it was shown makes it stale all the same. */
  async #decided(session: Session, request: RestoreRequest, drift: Drift): Promise<{ drift: Drift; plan: string }> {
    const { engine, captures } = this.#parts
    const { plan } = await captures.inOrder(session, () => engine.preview(session.id, { ...request, drift }))
    return { drift, plan }
  }

  /** Files went back and the conversation did not: its model has to know. A failure of this fails nothing (002-38). */
  #tellSource(invocation: CommandInvocation, outcome: Outcome, forked: boolean): void {
    if (forked || outcome.contextOnly || outcome.restored.length + outcome.removed.length === 0) return
    try {
      invocation.agent.inject(pluginMessage('[rwd] Files of the workspace were put back to an earlier state. Read a file again before you edit it.'))
    } catch {
      // The host's read-before-edit rule protects it anyway.
    }
  }

  async #clear(invocation: CommandInvocation, all: boolean): Promise<CommandResult> {
    const { ctx, config, engine, captures } = this.#parts
    const { agent, signal } = invocation
    const { session } = agent
    await captures.open(session)
    // What an older plugin recorded stays: it would not come in again.
    const points = this.#shown((await captures.inOrder(session, () => engine.list(session.id))).points).filter(point => point.kind !== 'import')
    if (points.length === 0 && !all) return success('nothing to clear')
    const answer = await confirm(ctx, config, {
      agent,
      question: all ? 'Clear the checkpoints of all sessions of this workspace?' : `Clear ${plural(points.length, 'checkpoint')} of this session?`,
      detail: 'Files are not touched. Named points stay, and so do the ends of turns that /checkpoint lists.',
      yes: ['Clear'],
      no: 'Cancel',
      toolName: 'rewind',
      signal,
    })
    if (!answer.allowed) return failure(`REWIND_DENIED: ${answer.why}; nothing was cleared`)
    const { dropped, kept } = await captures.inOrder(session, () => engine.drop(session.id, all))
    const left = kept === 0 ? '' : `; ${kept} kept, as a name or an undo needs them`
    return success(`cleared ${plural(dropped, 'checkpoint')}; files untouched${left}`)
  }

  async #alone(session: Session, run: () => Promise<CommandResult>): Promise<CommandResult> {
    if (this.#busy.has(session.id)) return failure('a rewind of this session is under way')
    this.#busy.add(session.id)
    try {
      return await run()
    } finally {
      this.#busy.delete(session.id)
    }
  }
}
