// generateContent and streamGenerateContent, as Gemini CLI speaks it.

export const tools = body => (body.tools ?? []).flatMap(tool => tool.functionDeclarations ?? [])

export function read(body) {
  const talk = []
  for (const { role, parts } of body.contents ?? []) {
    for (const part of parts ?? []) {
      if (part.functionCall) talk.push({ call: part.functionCall.name, input: part.functionCall.args })
      else if (part.functionResponse) talk.push({ result: JSON.stringify(part.functionResponse.response) })
      else if (part.text && !part.thought) talk.push({ role: role === 'model' ? 'assistant' : role, text: part.text })
    }
  }
  return talk
}

function functionCall([tool, input], root, fresh) {
  const [name, args] = {
    write: () => ['write_file', { file_path: `${root}/${input.path}`, content: input.content }],
    edit: () => [
      'replace',
      { file_path: `${root}/${input.path}`, instruction: 'As the script says', old_string: input.old, new_string: input.new },
    ],
    bash: () => ['run_shell_command', { command: input.command, description: 'As the script says' }],
  }[tool]()
  return { functionCall: { name, args, id: fresh('fc') } }
}

export function answer({ answer, root, fresh, url }) {
  const parts = [...(answer.say ? [{ text: answer.say }] : []), ...answer.calls.map(call => functionCall(call, root, fresh))]
  const json = {
    candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }],
    usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 20, totalTokenCount: 120 },
    modelVersion: 'mock',
    responseId: fresh('r'),
  }
  return /:stream/.test(url) ? { events: [['', json]] } : { json }
}
