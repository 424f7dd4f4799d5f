/**
 * System 001: marks, and folds of what followed a mark into a short report. Marks live in rwd's index, never in the log;
 * a fold appends one `user/message` that replaces its region, in the host's own vocabulary (001-15).
 */

import type { Captures } from './capture.ts'
import type { Config } from './config.ts'
import type { Engine, Mark } from './engine.ts'
import { eventsOf, pluginMessage, service, type Agent, type Context, type Logger, type RequestHeader, type Session, type ToolDefinition } from './host.ts'
import { openTurn } from './log.ts'
import { plural } from './render.ts'
import { blocksOf, findReport, FoldError, regionChars, sameRegion, selectRegion, textChars, type Region } from './surface.ts'
import { object, tool, WHOLE } from './tool.ts'

export interface Folded {
  readonly markId: number
  readonly foldedNodes: number
  readonly start: number
  readonly end: number
  readonly foldedChars: number
  readonly reportChars: number
}

/** The service `checkpoint` (001-01 … 06). */
export interface CheckpointService {
  mark(session: Session, objective?: string): Promise<{ id: number; logLength: number }>
  latestMark(sessionId: string): Promise<Mark | undefined>
  hasActive(sessionId: string): Promise<boolean>
  completeFold(sessionId: string, id: number): Promise<void>
}

export interface MarkParts {
  readonly ctx: Context
  readonly config: Config
  readonly engine: Engine
  readonly captures: Captures
  readonly log: Logger
}

const HEADINGS = {
  en: ['Findings', 'Files and Artifacts', 'Decisions', 'Unresolved Questions', 'Recommended Next Step'],
  zh: ['发现', '文件与产物', '决策', '未决问题', '建议的下一步'],
} as const

/** What the model is asked after the region's messages (001-16). */
export function instruction(language: 'en' | 'zh', objective?: string): string {
  const headings = HEADINGS[language].map(heading => `## ${heading}`).join('\n')
  const aim = objective?.trim() ?? ''
  if (language === 'zh')
    return `${aim === '' ? '' : `本次探索的目的：${aim}\n\n`}请为以上消息中的探索写一份报告。报告将取代这些消息，之后的工作只能看到这份报告。不要调用工具。使用 Markdown，且只包含以下五个小节，顺序不变：\n\n${headings}\n\n路径、命令和标识符须原样保留。只陈述消息中出现的内容。没有内容的小节写 (none)。篇幅须远小于原消息。`
  return `${aim === '' ? '' : `The exploration was for: ${aim}\n\n`}Write a report of the exploration in the messages above. It will stand in their place, and whoever goes on will see nothing of them but this report. Do not call tools. Write Markdown with exactly these five sections, in this order:\n\n${headings}\n\nKeep paths, commands and identifiers exactly as they were. State only what the messages show. Write (none) in a section that has nothing to say. Be much shorter than the messages.`
}

const WARNING =
  'An exploration that you marked is still open. Fold it into a report before you finish this turn, or say why it should stay as it is.'

export class Marks {
  readonly #parts: MarkParts
  readonly #folding = new Set<string>()
  /** The latest warned turn of each agent (001-18). */
  readonly #warned = new Map<string, number>()

  constructor(parts: MarkParts) {
    this.#parts = parts
  }

  /** What other plugins get as `ctx.checkpoint`. */
  service(): CheckpointService {
    const { engine } = this.#parts
    return {
      mark: (session, objective) => this.mark(session, objective),
      latestMark: id => engine.latestMark(id),
      hasActive: async id => (await engine.latestMark(id))?.folded === false,
      completeFold: (id, mark) => engine.completeFold(id, mark),
    }
  }

  async mark(session: Session, objective?: string): Promise<{ id: number; logLength: number }> {
    const { engine, captures } = this.#parts
    await captures.open(session)
    const said = objective?.trim()
    return captures.inOrder(session, () =>
      engine.mark(session.id, session.seq, openTurn(eventsOf(session)) ?? null, said === '' ? undefined : said),
    )
  }

  /** Folds what followed the newest mark. One at a time for each session (001-13). */
  async fold(agent: Agent, signal: AbortSignal, callId?: string): Promise<Folded> {
    const { session } = agent
    if (this.#folding.has(session.id)) throw new FoldError('FOLD_IN_PROGRESS', 'this session is being folded already')
    this.#folding.add(session.id)
    try {
      return await this.#fold(agent, signal, callId)
    } finally {
      this.#folding.delete(session.id)
    }
  }

  async #fold(agent: Agent, signal: AbortSignal, callId: string | undefined): Promise<Folded> {
    const { captures, engine } = this.#parts
    const { session } = agent
    await captures.open(session)
    const mark = await captures.inOrder(session, () => engine.latestMark(session.id))
    if (mark === undefined) throw new FoldError('NO_CHECKPOINT', 'there is no mark in this session')
    if (mark.folded) throw new FoldError('EMPTY_REGION', 'the newest mark is folded already')
    const before = findReport(eventsOf(session), mark.logLength)
    if (before !== undefined) {
      await engine.completeFold(session.id, mark.id)
      return folded(mark, before.region, textChars(blocksOf(before.event)))
    }
    const region = selectRegion(eventsOf(session), mark.logLength, callId)
    const report = await this.#report(agent, region, mark, signal)
    const chars = regionChars(region)
    if (chars > 0 && report.length >= chars) throw new FoldError('SHRINK', `the report has ${report.length} characters, the exploration ${chars}`)
    if (signal.aborted) throw new FoldError('ABORTED', 'the fold was stopped')
    // One synchronous block from here: nothing can come between the check and the report.
    if (!sameRegion(region, selectRegion(eventsOf(session), mark.logLength, callId)))
      throw new FoldError('CHANGED', 'the messages changed while the report was written')
    session.append('user/message', pluginMessage(report, 'rewind'), {
      surfaceOp: { op: 'replace', start: region.start, end: region.end },
      sourceEventSeqs: region.nodes.map(node => node.seq),
    })
    await engine.completeFold(session.id, mark.id).catch((error: Error) => {
      // The report is in the log: the next fold finds it and stamps the mark (K-15).
      this.#parts.log.warn(`UNSTAMPED: the exploration is folded, its mark is not stamped: ${error.message}`)
    })
    return folded(mark, region, report.length)
  }

  /** The report, written by the session's model (001-17). */
  async #report(agent: Agent, region: Region, mark: Mark, signal: AbortSignal): Promise<string> {
    const { ctx, config } = this.#parts
    const llm = service(ctx, 'llm')
    if (llm === undefined) throw new FoldError('NO_MODEL', 'this profile has no model service')
    const header = agent.session.requestHeader?.()
    const route = routeOf(config, header, agent)
    if (route === undefined) throw new FoldError('NO_MODEL', 'no model is named: set reportProvider and reportModel')
    const asked = pluginMessage(instruction(config.reportLanguage, mark.objective), 'rewind')
    const messages = region.nodes.map(node => agent.session.deriveEventMessage?.(node.event)).filter(message => message !== null && message !== undefined)
    const effort = await offEffort(llm, route, signal)
    const options = {
      ...route,
      messages: [...messages, asked],
      ...(header?.system === undefined ? {} : { system: header.system }),
      ...(header?.tools === undefined ? {} : { tools: [...header.tools] }),
      ...(effort === undefined ? {} : { reasoningEffort: effort }),
      maxTokens: config.reportMaxTokens,
      sessionId: agent.session.id,
      signal,
    }
    let last: Completion | undefined
    for (let attempt = 0; attempt <= config.reportRetries; attempt++) {
      last = await complete(llm.stream(options))
      if (last.failure !== undefined) throw new FoldError(signal.aborted ? 'ABORTED' : 'REPORT_FAILED', last.failure)
      if (last.text.trim() !== '') return last.text.trim()
    }
    const tokens = [last?.output === undefined ? '' : `${last.output} output tokens`, last?.reasoning === undefined ? '' : `${last.reasoning} of them reasoning`]
    const spent = tokens.filter(text => text !== '').join(', ')
    throw new FoldError('NO_REPORT', `the model wrote no report (${last?.finish ?? 'no end'}${spent === '' ? '' : `; ${spent}`})`)
  }

  /** Warns once in each turn that would end with an open exploration (001-18). */
  async turnStopping(agent: Agent, turn: number): Promise<void> {
    const { engine, log } = this.#parts
    if ((this.#warned.get(agent.id) ?? 0) >= turn) return
    try {
      const mark = await engine.latestMark(agent.session.id)
      if (mark === undefined || mark.folded) return
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'NO_ENGINE') log.warn(`whether an exploration is open could not be read: ${(error as Error).message}`)
      return
    }
    this.#warned.set(agent.id, turn)
    agent.steer?.(pluginMessage(WARNING, 'rewind'))
  }
}

function folded(mark: Mark, region: Region, reportChars: number): Folded {
  return { markId: mark.id, foldedNodes: region.nodes.length, start: region.start, end: region.end, foldedChars: regionChars(region), reportChars }
}

interface Route {
  readonly provider: string
  readonly model: string
}

/** Configured, else of the last request, else of the agent (001-17). */
export function routeOf(config: Pick<Config, 'reportProvider' | 'reportModel'>, header: RequestHeader | undefined, agent: Pick<Agent, 'options'>): Route | undefined {
  const route = (provider: string | undefined, model: string | undefined): Route | undefined =>
    provider !== undefined && provider !== '' && model !== undefined && model !== '' ? { provider, model } : undefined
  return (
    route(config.reportProvider, config.reportModel) ??
    route(header?.config.provider, header?.config.model) ??
    route(agent.options.provider, agent.options.model)
  )
}

/** The reasoning effort that switches thinking off, where the route advertises one. */
async function offEffort(llm: object, route: Route, signal: AbortSignal): Promise<string | undefined> {
  const { resolveModelInfo } = llm as { resolveModelInfo?: (provider: string, model: string, signal: AbortSignal) => Promise<unknown> }
  if (resolveModelInfo === undefined) return undefined
  try {
    const info = (await resolveModelInfo.call(llm, route.provider, route.model, signal)) as { reasoning?: { efforts?: readonly unknown[] } } | undefined
    const ids = (info?.reasoning?.efforts ?? []).map(effort => (typeof effort === 'string' ? effort : (effort as { id?: unknown } | null)?.id))
    return ids.includes('off') ? 'off' : undefined
  } catch {
    // It is a saving, not a condition.
    return undefined
  }
}

interface Completion {
  readonly text: string
  readonly finish?: string
  readonly failure?: string
  readonly output?: number
  readonly reasoning?: number
}

/** Reads a stream of the host to its end. Only texts count: a report has no calls. */
async function complete(stream: AsyncIterable<unknown>): Promise<Completion> {
  let text = ''
  let finish: string | undefined
  let failure: string | undefined
  let usage: { outputTokens?: number; reasoningTokens?: number } | undefined
  for await (const raw of stream) {
    const chunk = raw as { type?: string; text?: string; usage?: typeof usage; reason?: { kind?: string; failure?: { message?: string } } }
    if (chunk.type === 'text-delta') text += chunk.text ?? ''
    else if (chunk.type === 'usage') usage = chunk.usage
    else if (chunk.type === 'finish') {
      finish = chunk.reason?.kind
      if (finish === 'error' || finish === 'aborted') failure = chunk.reason?.failure?.message ?? finish
    }
  }
  return {
    text,
    ...(finish === undefined ? {} : { finish }),
    ...(failure === undefined ? {} : { failure }),
    ...(usage?.outputTokens === undefined ? {} : { output: usage.outputTokens }),
    ...(usage?.reasoningTokens === undefined ? {} : { reasoning: usage.reasoningTokens }),
  }
}

/** The standing section of the system prompt (001-07); it never changes, so that the request's prefix stays (001-08). */
export function promptSection(config: Config): { name: string; order: number; text: string } {
  return {
    name: 'tool:checkpoint',
    order: 150,
    text: `Call \`${config.toolName}\` before an investigation that will take several tool calls and whose details you will not need afterwards. When you know what you wanted to know, and before you finish the turn, call \`rewind\`: it replaces everything since the mark by a short report. Files stay as they are.`,
  }
}

function agentOf(agent: Agent | undefined): Agent {
  if (agent === undefined) throw new FoldError('NO_SESSION', 'this tool needs the session of an agent')
  return agent
}

export function markTools(marks: Marks, config: Config): ToolDefinition[] {
  return [
    tool<{ objective?: string }>({
      name: config.toolName,
      description: 'Mark where an exploration begins, so that everything since can be folded into a short report with rewind.',
      arguments: { objective: { type: 'string', description: 'What the exploration is to find out' } },
      answer: object({ id: WHOLE, logLength: WHOLE }),
      render: (value: { id: number }) => `mark ${value.id} set`,
      run: async ({ objective }, exec) => {
        const { id, logLength } = await marks.mark(agentOf(exec.agent).session, objective)
        return { id, logLength }
      },
    }),
    tool<Record<string, never>>({
      name: 'rewind',
      description: 'Replace every message since the newest mark by a short report of what was found. Files stay as they are.',
      arguments: {},
      answer: object({ markId: WHOLE, foldedNodes: WHOLE, start: WHOLE, end: WHOLE, foldedChars: WHOLE, reportChars: WHOLE }),
      render: (value: Folded) =>
        `folded ${plural(value.foldedNodes, 'node')} (${value.foldedChars} characters) of mark ${value.markId} into a report of ${value.reportChars} characters`,
      run: async (_args, exec) => ({ ...(await marks.fold(agentOf(exec.agent), exec.signal, exec.callId)) }),
    }),
  ]
}

